/** The notice: a sentence on what was done, until the next action or for some seconds. */

import { button } from './core/bits.js';
import { h } from './core/dom.js';
import { changed } from './core/loop.js';
import { seen } from './core/words.js';
import { ui } from './state.js';

const SHOWN_MS = 5_000;
const ACTION_MS = 10_000;

/** Return the notice; a conversation that is seen keeps a line for it, elsewhere it has one at the end. */
export function noticeBar(isInConversation) {
  const isChat = ui.place.kind === 'session' && ui.session?.isLoaded && (ui.pane === 'chat' || !matchMedia('(max-width: 760px)').matches);
  if (!ui.notice || Boolean(isChat) !== isInConversation) return null;
  const { text, action, at } = ui.notice;
  const close = () => {
    if (ui.notice?.at === at) ui.notice = null;
    changed();
  };
  const mount = (element) => {
    const onAction = (event) => (event.type === 'click' || event.key === 'Enter') && !element.contains(event.target) && close();
    const id = setTimeout(close, action ? ACTION_MS : SHOWN_MS);
    for (const kind of ['click', 'keydown']) addEventListener(kind, onAction, true);
    return () => {
      clearTimeout(id);
      for (const kind of ['click', 'keydown']) removeEventListener(kind, onAction, true);
    };
  };
  return h('div', { class: 'notice', role: 'status', key: `notice-${at}`, mount }, h('span', {}, seen(text)), action ? button(action.text, () => { action.run(); close(); }, { kind: 'small' }) : null, button('', close, { kind: 'quiet small', sign: 'cross', label: 'Close' }));
}
