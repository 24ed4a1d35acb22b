/** The screen of a session: outline, conversation, inspector. */

import { button, titleField } from '../core/bits.js';
import { h } from '../core/dom.js';
import { changed } from '../core/loop.js';
import { keepPref } from '../core/prefs.js';
import { go } from '../core/route.js';
import { backAddress } from '../commands.js';
import { later, shown } from '../later.js';
import { inspector } from '../inspector/inspector.js';
import { here, ui } from '../state.js';
import { openFork } from './actions.js';
import { endRenaming } from './changes.js';
import { composer, dropAnywhere } from './composer.js';
import { conversation } from './conversation.js';
import { outline } from './outline.js';
import { titled } from './paths.js';
import { momentBar } from './topbar.js';

const LEAST = 220;
const MOST = 480;

/** Return the screen of a session that is loaded. */
export function sessionScreen(session) {
  const moment = here(session);
  const style = { '--tree': `${ui.panes.tree}px`, '--data': `${ui.panes.data}px` };
  const hidden = `${ui.panes.isTreeHidden ? ' no-tree' : ''}${ui.panes.isDataHidden ? ' no-data' : ''}${ui.isDrawerOpen ? ' drawer' : ''}`;
  const back = backAddress(session);
  return h('div', { class: `panes${hidden}`, style, ondragover: (event) => event.preventDefault(), ondrop: dropAnywhere(session) },
    outline(session),
    h('main', { class: 'middle', tabindex: -1 },
      h('h2', { class: 'unseen' }, 'Conversation'),
      session.isRenaming ? renameBar(session) : null,
      moment.isPast ? momentBar(session, moment, () => openFork(session, moment.branch, moment.number), () => go(back), backText(session)) : null,
      ui.map ? shown(later.map, (found) => found.mapPane(session)) : null,
      conversation(session, moment),
      moment.isPast ? null : composer(session, moment.branch),
      divider('tree', 'Width of branches', 1), divider('data', 'Width of the inspector', -1)),
    inspector(session, moment));
}

function backText(session) {
  const branch = session.lastLive ?? here(session).branch;
  return `Back to ${titled(session, branch)} ${session.path(branch).length}`;
}

function renameBar(session) {
  const end = (event) => {
    event.preventDefault();
    endRenaming(session, event.target.elements.title.value);
  };
  const onkeydown = (event) => {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    endRenaming(session, '');
  };
  return h('form', { class: 'rename-bar row', onsubmit: end, onkeydown }, titleField('Title of the session', session.name),
    h('button', { type: 'submit', class: 'button primary' }, 'Rename'), button('Cancel', () => endRenaming(session, '')));
}

/** A border that is dragged, or moved with the arrows. */
function divider(name, label, sign) {
  const set = (width) => {
    ui.panes[name] = Math.round(Math.max(LEAST, Math.min(MOST, width)));
    keepPref('panes', ui.panes);
    changed();
  };
  const onpointerdown = (event) => {
    const [start, width] = [event.clientX, ui.panes[name]];
    event.target.setPointerCapture(event.pointerId);
    event.target.onpointermove = (move) => set(width + sign * (move.clientX - start));
    event.target.onpointerup = () => { event.target.onpointermove = null; };
  };
  const onkeydown = (event) => {
    const step = { ArrowLeft: -16, ArrowRight: 16 }[event.key];
    if (step) set(ui.panes[name] + sign * step);
  };
  return h('div', { class: `divider at-${name}`, role: 'separator', 'aria-orientation': 'vertical', 'aria-label': label, 'aria-valuenow': ui.panes[name], 'aria-valuemin': LEAST, 'aria-valuemax': MOST, tabindex: 0, onpointerdown, onkeydown });
}
