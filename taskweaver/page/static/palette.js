/** Find: commands by name, and passages of all conversations. */

import * as api from './core/api.js';
import { h } from './core/dom.js';
import { icon } from './core/icons.js';
import { changed } from './core/loop.js';
import { go, momentAddress } from './core/route.js';
import { excerpt, seen } from './core/words.js';
import { commandsHere } from './commands.js';
import { later, load } from './later.js';
import { ui } from './state.js';

const WAIT_MS = 200;
const MOST_COMMANDS = 6;
const MOST_SETTINGS = 4;
let asked = null;

/** Open the palette: commands by name, and passages of all conversations. */
export function openPalette() {
  ui.palette = { text: '', passages: [], at: 0, state: '' };
  load(later.settings).then((found) => found?.settingItems());
  changed();
}

function closePalette() {
  ui.palette = null;
  changed();
}

/** Return the palette as a dialog. */
export function palette() {
  const items = itemsOf(ui.palette);
  const oninput = (event) => {
    Object.assign(ui.palette, { text: event.target.value, at: 0 });
    look();
    changed();
  };
  const onkeydown = (event) => {
    const items = itemsOf(ui.palette); // what was typed since the last drawing counts
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && items.length) ui.palette.at = (ui.palette.at + step + items.length) % items.length;
    else if (event.key === 'Enter' && items[ui.palette.at]) run(items[ui.palette.at]);
    else return;
    event.preventDefault();
    changed();
  };
  return h('dialog', { class: 'dialog palette', 'aria-label': 'Find', mount: (element) => element.showModal(), onclose: closePalette, onclick: (event) => event.target === event.currentTarget && closePalette() },
    h('div', { class: 'dialog-body' },
      h('input', { type: 'search', placeholder: 'Find in all conversations, or a command', 'aria-label': 'Find', value: ui.palette.text, oninput, onkeydown, role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'palette-list', autofocus: true }),
      h('ul', { id: 'palette-list', role: 'listbox', 'aria-label': 'Found' }, items.map((item, at) =>
        h('li', { role: 'option', 'aria-selected': String(at === ui.palette.at), class: at === ui.palette.at ? 'chosen' : '', onclick: () => run(item) },
          icon(item.sign), h('span', { class: 'shrink' }, seen(item.text)), h('span', { class: 'muted end shrink' }, seen(item.note ?? ''))))),
      items.length ? null : h('p', { class: 'muted' }, ui.palette.state || 'Nothing found.')));
}

function itemsOf(state) {
  const words = state.text.toLowerCase().trim();
  const rank = (one) => (one.text.toLowerCase().includes(words) ? 0 : words.split(/\s+/).every((word) => `${one.text} ${one.words ?? ''}`.toLowerCase().includes(word)) ? 1 : 2);
  const ranked = (all, most) => all.map((one) => [rank(one), one]).filter(([place]) => place < 2).sort(([a], [b]) => a - b).map(([, one]) => one).slice(0, most);
  const commands = ranked(commandsHere(), words ? MOST_COMMANDS : 20).map((one) => ({ ...one, sign: 'right', note: one.key }));
  const settings = words ? ranked(later.settings.module?.settingItems() ?? [], MOST_SETTINGS).map((one) => ({ ...one, sign: 'gear', note: 'setting' })) : [];
  return [...commands, ...settings, ...state.passages];
}

function run(item) {
  ui.palette = null;
  item.run();
  changed();
}

function look() {
  clearTimeout(asked);
  const state = ui.palette;
  const wanted = state.text.trim();
  state.state = wanted ? 'Looking.' : '';
  if (!wanted) state.passages = [];
  else asked = setTimeout(() => find(state, wanted), WAIT_MS);
}

async function find(state, wanted) {
  try {
    const found = await api.get('find', { q: wanted });
    if (state.text.trim() !== wanted) return;
    state.passages = found.passages.slice(0, 30).map((one) => ({
      sign: 'find', text: excerpt(one.text, wanted, 110), note: [one.number ? `round ${one.number}` : '', one.branch_title === 'main' ? '' : one.branch_title, one.title || 'New session'].filter(Boolean).join(', '),
      run: () => go(momentAddress(one.session_id, one.branch || 'main', one.number)),
    }));
    state.state = found.passages.length ? '' : 'No conversation has these words.';
  } catch (error) {
    state.state = error.message;
  }
  changed();
}
