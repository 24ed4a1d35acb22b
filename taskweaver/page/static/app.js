/** The page: reads the address, holds the session it names, and draws the screen. */

import { announce } from './core/announce.js';
import * as api from './core/api.js';
import { button, failure, loading } from './core/bits.js';
import { h, render } from './core/dom.js';
import { changed, setDraw } from './core/loop.js';
import { applyTheme, keepPref } from './core/prefs.js';
import { go, onPlace, place } from './core/route.js';
import { follow, resume, startStream } from './core/stream.js';
import { onKey } from './commands.js';
import { later, load, shown } from './later.js';
import { branchesIn } from './session/branch_states.js';
import { SessionModel } from './session/model.js';
import { sessionScreen } from './session/screen.js';
import { offlineBar, topbar } from './session/topbar.js';
import { readSessions } from './sessions/list.js';
import { readStart, startScreen } from './start/start.js';
import { noticeBar } from './notice.js';
import { phoneBar } from './phone.js';
import { foldAtOpening, here, openWay, ui } from './state.js';

const root = document.getElementById('app');
let signInProblem = '';

function draw() {
  document.title = titleOf();
  if (ui.isSignedOut) {
    render(root, shown(later.signIn, (found) => found.signIn(signInProblem, begin)));
    document.body.dataset.ready = 'yes';
    return;
  }
  root.className = `at-${ui.place.kind} pane-${ui.pane}`;
  const session = isAtSession() ? ui.session : null;
  render(root, topbar(session), offlineBar(), noticeBar(false), screen(session), phoneBar(), ui.dialog?.(), ui.palette ? later.palette.module.palette() : null);
  document.body.dataset.ready = session && !session.isLoaded && !session.problem ? '' : 'yes';
}

function titleOf() {
  if (ui.place.kind === 'searches') return 'Searches · TaskWeaver';
  if (!ui.session || ui.place.kind === 'sessions') return 'TaskWeaver';
  const asks = branchesIn(ui.session, 'asks').length ? '? ' : '';
  return `${asks}${ui.session.name} · TaskWeaver`;
}

function screen(session) {
  if (ui.place.kind === 'sessions') return startScreen();
  if (ui.place.kind === 'searches') return shown(later.searches, (found) => found.searchesScreen());
  if (session?.problem && (!session.isLoaded || session.problem.status === 404)) return gone(session);
  if (!session?.isLoaded) return h('main', { class: 'centre' }, loading(6));
  return ui.place.kind === 'compare' ? shown(later.compare, (found) => found.compareScreen(session)) : sessionScreen(session);
}

function gone(session) {
  const isDeleted = session.problem.kind === 'deleted';
  return h('main', { class: 'centre' }, failure(isDeleted ? 'This session was deleted' : 'This session cannot be opened', isDeleted ? 'It was deleted in another tab or by another program. Other sessions are as they were.' : session.problem.message,
    button('All sessions', () => go('#/'), { kind: 'primary' }), isDeleted ? null : button('Try again', () => open(session.id))));
}

/** Show the place that the address names. */
function show() {
  ui.place = place();
  ui.fork = null;
  ui.dialog = null;
  if (ui.place.kind === 'sessions') readStart().then((last) => ui.place.kind === 'sessions' && follow('', 0, last));
  if (ui.place.kind === 'searches') load(later.searches).then((found) => found?.readSearches(ui.place));
  else later.searches.module?.leaveSearches();
  if (isAtSession()) enter();
  changed();
}

function isAtSession() {
  return ['session', 'compare'].includes(ui.place.kind);
}

function enter() {
  const { session } = ui;
  if (session?.id !== ui.place.session) return open(ui.place.session);
  if (!session.isLoaded) return null;
  if (!resume(session.id)) onGap(session.id);
  const moment = here(session);
  if (!moment.isPast) {
    session.lastLive = moment.branch;
    keepPref(`at.${session.id}`, moment.branch);
  }
  if (session.shownBranch !== moment.branch) openWay(session); // also when a link or Back led there
  session.shownBranch = moment.branch;
  for (const round of session.path(moment.branch)) session.unread.delete(round.round_id);
  return null;
}

async function open(id) {
  const session = new SessionModel(id);
  ui.session = session;
  changed();
  try {
    await session.load(ui.place);
    foldAtOpening(session);
    if (!session.index.length) load(later.cards).then((found) => found?.readCards(session, 'main'));
    enter();
  } catch (error) {
    if (!(error instanceof api.Problem)) throw error;
    session.problem = error;
    announce(error.message);
  }
  changed();
}

function onEvent(kind, data) {
  if (ui.place.kind === 'sessions' && !('type' in data) && /^(?:session|branch|message|confirmation)_/.test(kind)) readSessions();
  ui.session?.handle(kind, data);
  later.searches.module?.heard(data);
  if (kind === 'round_end' && isAtSession()) enter();
}

/** Events were lost, or the session is gone: read the state anew; scroll and drafts stay. */
async function onGap(session) {
  if (!session && ui.place.kind === 'sessions') readSessions();
  later.searches.module?.lost(session);
  if (ui.session?.id !== session) return;
  try {
    for (const round of ui.session.rounds.values()) round.isStored = false;
    await ui.session.load(ui.place);
  } catch (error) {
    ui.session.problem = error;
  }
  changed();
}

function begin() {
  ui.isSignedOut = false;
  startOnce();
  show();
}

/** Begin where a proxy adds the token; else ask for it. */
async function beginWithoutToken() {
  try {
    await api.get('usage');
  } catch (error) {
    ui.isSignedOut = error.status === 401;
  }
  if (ui.isSignedOut) changed();
  else begin(); // which tells what else is wrong, and tries again
}

let isStarted = false;

function startOnce() {
  if (isStarted) return;
  setTimeout(() => load(later.palette), 1000); // whoever presses its key types on at once
  isStarted = true;
  startStream({ onEvent, onConnection: changed, gap: onGap });
}

function start() {
  applyTheme();
  api.takeToken();
  setDraw(draw);
  api.whenRefused(() => {
    ui.isSignedOut = true;
    signInProblem = api.hasToken() ? 'The token is not valid any more. Sign in again; what is typed is kept.' : '';
    changed();
  });
  onPlace(() => {
    if (/^#token=/.test(location.hash)) {
      api.takeToken();
      begin();
    } else show();
  });
  addEventListener('keydown', onKey);
  addEventListener('resize', changed);
  if (api.hasToken()) begin();
  else beginWithoutToken();
}

start();

