/** Names after `@`: variables and files of the branch, and rounds. */

import * as api from '../core/api.js';
import { h } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { roundTitle, seen } from '../core/words.js';

const MOST = 8;
const MOST_ROUNDS = 3; // where variables and files would fill the list
const SIGNS = { variable: 'data', file: 'file', round: 'chat' };
const BEFORE = /(?:^|\s)@([\w.\-/]*)$/;
const lists = new Map(); // of each composer: {names, at, word}

/** Look for names when the text before the cursor ends in `@` and a beginning. */
export async function lookForNames(session, branch, slot, area) {
  const match = begun(area);
  if (!match) {
    lists.delete(slot);
    return;
  }
  const all = await namesOf(session, branch);
  if (begun(area)?.[1] !== match[1]) return; // more was typed meanwhile
  const word = match[1].toLowerCase();
  const found = all.filter((one) => one.name.toLowerCase().includes(word));
  const rounds = roundsNamed(session, branch, word);
  const names = [...found.slice(0, MOST - Math.min(rounds.length, MOST_ROUNDS)), ...rounds].slice(0, MOST);
  if (names.length) lists.set(slot, { names, at: 0 });
  else lists.delete(slot);
  changed();
}

/** Rounds by number (`@12`, `@round12`) or by a word of their title, the newest first; one is cited with its title. */
function roundsNamed(session, branch, word) {
  const isNamed = ({ number, title }) => `round${number}`.startsWith(word) || String(number).startsWith(word) || title.toLowerCase().includes(word);
  return session.path(branch).filter(isNamed).reverse().map(({ number, title }) => {
    const said = roundTitle(title);
    return { name: `round ${number}`, kind: 'round', text: said, insert: `round ${number} (“${said}”)` };
  });
}

function begun(area) {
  return BEFORE.exec(area.value.slice(0, area.selectionStart));
}

async function namesOf(session, branch) {
  const number = session.path(branch).length;
  const [moment, files] = await Promise.all([
    number ? api.get(`${session.where}/branches/${api.path(branch)}/rounds/${number}`).catch(() => null) : null,
    api.get(`${session.where}/files`, { branch }).catch(() => null),
  ]);
  return [
    ...(moment?.variables ?? []).map((one) => ({ name: one.name, kind: 'variable', text: one.text })),
    ...(files?.files ?? []).map((one) => ({ name: one.path, kind: 'file', text: 'file' })),
  ];
}

/** Return the list of names of a composer, if it is open; `choose(name, area)` takes the one that is pressed. */
export function completion(slot, choose) {
  const list = lists.get(slot);
  if (!list) return null;
  const press = (one) => (event) => {
    event.preventDefault();
    lists.delete(slot);
    choose(inserted(one), event.target.closest('.composer').querySelector('textarea'));
  };
  return h('ul', { class: 'completion', role: 'listbox', 'aria-label': 'Names' }, list.names.map((one, at) =>
    h('li', { role: 'option', 'aria-selected': String(at === list.at), class: at === list.at ? 'chosen' : '', 'data-name': one.name, onpointerdown: press(one), onmousedown: (event) => event.preventDefault() },
      icon(SIGNS[one.kind]), h('code', {}, seen(one.name)), h('span', { class: 'muted' }, seen(one.text).slice(0, 60)))));
}

/** Handle a key while the list is open; `choose(name)` takes a name. Return whether it was used. */
export function completionKey(event, choose) {
  const slot = event.target.closest('.composer').dataset.slot;
  const list = lists.get(slot);
  if (!list) return false;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) list.at = (list.at + step + list.names.length) % list.names.length;
  else if (event.key === 'Enter' || event.key === 'Tab') choose(inserted(list.names[list.at]));
  else if (event.key !== 'Escape') return false;
  if (!step) lists.delete(slot);
  event.preventDefault();
  event.stopPropagation();
  changed();
  return true;
}

function inserted(one) {
  return one.insert ?? one.name;
}

/** Return the text of a field with a name in place of what was begun, and the cursor after it. */
export function chosenName(slot, area, name) {
  const before = area.value.slice(0, area.selectionStart);
  const start = before.length - BEFORE.exec(before)[1].length - 1;
  const made = `${area.value.slice(0, start)}${name} `;
  return { text: made + area.value.slice(area.selectionStart), at: made.length };
}
