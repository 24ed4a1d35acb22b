/** A request that waits for a person: allow, edit, or deny. */

import { button } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { keepDraft } from '../core/prefs.js';
import { seen } from '../core/words.js';
import { codeBlock, diffLines } from '../text/highlight.js';
import { confirm, focusOn } from './actions.js';

const TITLES = { code: 'Run this code?', shell: 'Run these commands?' };

/** Return the card of a cell that asks. */
export function askCard(session, round, item) {
  const request = session.asking.find((one) => one.confirmation_id === item.asks.id);
  const kinds = request?.kinds ?? item.asks.kinds;
  const content = request?.content ?? item.asks.content;
  const answer = (word) => () => confirm(session, item.asks.id, word);
  const edit = async () => {
    // The API takes yes or no: the code is denied here, and runs as edited from the composer.
    if (!(await confirm(session, item.asks.id, 'no'))) return;
    keepDraft(session.id, round.branch, `/run\n${content}`);
    changed();
    focusOn('.composer textarea');
  };
  const keys = { y: answer('yes'), e: edit, n: answer('no') };
  const onkeydown = (event) => {
    const act = keys[event.key.toLowerCase()];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  };
  return h('div', { class: 'ask-card', role: 'group', 'aria-label': 'Asks you', tabindex: -1, onkeydown, mount: takeFocus },
    h('p', { class: 'ask-title' }, icon('ask'), titleOf(kinds)),
    h('p', {}, `Needed for ${kinds.map(seen).join(', ')}, on ${seen(round.branch)} only.`),
    request?.diff ? h('pre', { class: 'code', tabindex: 0, role: 'group', 'aria-label': 'Changes' }, h('code', {}, diffLines(request.diff))) : codeBlock(content, 'python'),
    h('div', { class: 'row' },
      button('Allow', answer('yes'), { kind: 'primary', key: 'Y' }),
      button('Always', answer('always'), { label: 'Allow this kind for this session' }),
      button('Edit code', edit, { key: 'E' }),
      button('Deny', answer('no'), { key: 'N' })));
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
