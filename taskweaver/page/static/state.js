/** The state of the page that is not the server's: where one is, and what is open. */

import { changed } from './core/loop.js';
import { pref } from './core/prefs.js';

/** What is shown: the place, the session, and the state of panes and parts. */
export const ui = {
  place: { kind: 'sessions' },
  session: null,
  isSignedOut: false,
  panes: pref('panes', { tree: 312, data: 304, isTreeHidden: false, isDataHidden: false }),
  isDrawerOpen: false,
  pane: 'chat',
  tab: 'data',
  fork: null,
  palette: null,
  dialog: null,
  map: false,
  notice: null,
  composerFocus: '',
  openCells: new Map(),
  folded: new Map(),
  allCode: null,
};

/** Return the moment that is shown: branch, number of the round, and whether it is a past one. */
export function here(session = ui.session) {
  const branch = ui.place.branch || session.branches.find((one) => one.is_current)?.name || 'main';
  const total = session.path(branch).length;
  const wanted = ui.place.round;
  const isPast = wanted !== null && wanted !== undefined && wanted < total;
  return { branch, number: isPast ? wanted : total, isPast, total };
}

/** Return whether a branch is folded in the outline. */
export function isFolded(session, name) {
  return ui.folded.get(`${session.id}/${name}`) ?? false;
}

/** Fold a branch, or open it. */
export function fold(session, name, isFoldedNow) {
  ui.folded.set(`${session.id}/${name}`, isFoldedNow);
}

/** At opening, fold the branches that are not on the way and neither run nor ask. */
export function foldAtOpening(session) {
  for (const { name } of session.branches) {
    const isSet = ui.folded.has(`${session.id}/${name}`);
    if (!isSet) fold(session, name, session.stateOf(name) === 'idle');
  }
  openWay(session);
}

/** Open the branches on the way to one, or to the moment that is shown. */
export function openWay(session, branch = here(session).branch) {
  for (let node = session.tree.get(branch); node; node = session.tree.get(node.parent)) {
    fold(session, node.name, false);
  }
}

/** Show a sentence for some seconds, with an action if there is one. */
export function notify(text, action = null) {
  ui.notice = { text, action, at: Date.now() };
}

/** Show a dialog: `view()` returns it as it is now. Null closes it. */
export function showDialog(view) {
  ui.dialog = view;
  changed();
}

/** Show or hide the inspector; on windows of middle width it is a drawer over the conversation. */
export function toggleInspector() {
  if (matchMedia('(max-width: 1100px)').matches) {
    ui.isDrawerOpen = !ui.isDrawerOpen;
    ui.panes.isDataHidden = false;
  } else ui.panes.isDataHidden = !ui.panes.isDataHidden;
  changed();
}
