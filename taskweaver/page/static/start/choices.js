/** Numbered questions: a click asks one, and so does its number. */

import { withCode } from '../core/bits.js';
import { h } from '../core/dom.js';
import { seen } from '../core/words.js';

/** Return questions `{text, shown, result}`; `ask(text)` asks one, which may be `shown` shorter. The last list on the page takes the keys. */
export function choices(items, ask, intro, kind = '') {
  if (!items?.length) return null;
  const keys = items.map((_, at) => at + 1).join(', ').replace(/, (\d)$/, ' or $1');
  return h('div', { class: `choices ${kind}` }, h('p', { class: 'muted' }, `${intro}: click, or type ${keys} and Enter`),
    h('ul', {}, items.map((item, at) => {
      return h('li', { key: at }, h('button', { type: 'button', class: 'choice-button', 'aria-label': [at + 1, item.text, item.result].filter(Boolean).join(', ').replaceAll('`', ''), onclick: () => ask(item.text) },
        h('span', { class: 'choice-number', 'aria-hidden': 'true' }, String(at + 1)), h('span', { class: 'choice-text' }, withCode(item.shown ?? item.text)), h('span', { class: 'muted choice-result' }, seen(item.result ?? ''))));
    })));
}

/** Return a question without the name of its file, which stands beside it. */
export function withoutFile({ text, file }) {
  return file ? text.replace(new RegExp(` (?:in|of|from) ${file.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?=[?.]?$)`), '') : text;
}

/** Take the choice of a number where one is offered: of the last list on the page. Return whether there was one. */
export function takeChoice(text) {
  if (!/^[1-9]$/.test(text.trim())) return false;
  const lists = [...document.querySelectorAll('.choices')].filter((one) => one.checkVisibility());
  const found = lists.at(-1)?.querySelectorAll('.choice-button')[Number(text) - 1];
  found?.click();
  return Boolean(found);
}
