/** A request that waits for a person: allow, edit, or deny. */

import { button } from '../core/bits.js';
import { h, local } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { seen } from '../core/words.js';
import { codeBlock, diffLines } from '../text/highlight.js';
import { confirm, focusOn } from './actions.js';
import { titled } from './paths.js';

const MOST_ROWS = 18;
const TITLES = { code: 'Run this code?', shell: 'Run these commands?' };

/** Return the card of a cell that asks. */
export function askCard(session, round, item) {
  const request = session.asking.find((one) => one.confirmation_id === item.asks.id);
  const kinds = request?.kinds ?? item.asks.kinds;
  const content = request?.content ?? item.asks.content;
  const names = kinds.map(seen).join(', ');
  const answer = (word) => () => confirm(session, item.asks.id, word);
  return local({ key: item.asks.id }, { isEditing: false }, (state, set) => {
    const edit = (isEditing) => () => {
      set({ isEditing });
      if (!isEditing) focusOn('.ask-card');
    };
    const keys = state.isEditing ? {} : { y: answer('yes'), n: answer('no'), ...(request?.is_editable ? { e: edit(true) } : {}) };
    return h('div', { class: 'ask-card', role: 'group', 'aria-label': 'Asks you', tabindex: -1, onkeydown: (event) => byKey(event, keys), mount: takeFocus },
      h('p', { class: 'ask-title' }, icon('ask'), titleOf(kinds)),
      h('p', {}, `Needed for ${names}, on ${titled(session, round.branch)} only.`),
      state.isEditing ? editor(content, (code) => confirm(session, item.asks.id, 'yes', code), edit(false)) : [
        request?.diff ? h('pre', { class: 'code', tabindex: 0, role: 'group', 'aria-label': 'Changes' }, h('code', {}, diffLines(request.diff))) : codeBlock(content, 'python'),
        h('div', { class: 'row' },
          button('Allow', answer('yes'), { kind: 'primary', key: 'Y' }),
          button('Always', answer('always'), { label: `Always allow ${names} in this session` }),
          request && !request.is_editable ? null : button('Edit code', edit(true), { key: 'E', disabled: !request }),
          button('Deny', answer('no'), { key: 'N' })),
        h('p', { class: 'muted' }, `Always: ${names} ${kinds.length === 1 ? 'is' : 'are'} not asked about again, on any branch of this session, until the session is closed.`)]);
  });
}

function byKey(event, keys) {
  const act = keys[event.key.toLowerCase()];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  act();
}

/** A field with the code, which runs as it stands there, once. */
function editor(content, run, cancel) {
  const mount = (element) => {
    element.value = content;
    element.rows = Math.min(MOST_ROWS, content.split('\n').length + 1);
    element.focus();
  };
  const runIt = (event) => {
    const { value } = event.currentTarget.closest('.ask-card').querySelector('textarea');
    if (value.trim()) run(value);
  };
  const onkeydown = (event) => {
    if (event.key === 'Escape') cancel();
    else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) runIt(event);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return [h('textarea', { class: 'code-field', 'aria-label': 'Code to run', spellcheck: 'false', mount, onkeydown }),
    h('div', { class: 'row' }, button('Run as edited', runIt, { kind: 'primary', key: 'Ctrl ↵' }), button('Cancel', cancel, { key: 'Esc' }))];
}

function titleOf(kinds) {
  const named = kinds.find((kind) => kind in TITLES);
  if (named && kinds.length === 1) return TITLES[named];
  const [kind, ...name] = (kinds.find((one) => !(one in TITLES)) ?? 'code').split(' ');
  return name.length ? `Allow the ${kind} ${seen(name.join(' '))}?` : TITLES.code;
}

/** Take the focus only when nothing is being typed. */
function takeFocus(element) {
  const active = document.activeElement;
  const isTyping = active?.matches('textarea, input, select') && active.value;
  if (!isTyping && document.hasFocus()) element.focus({ preventScroll: true });
}
