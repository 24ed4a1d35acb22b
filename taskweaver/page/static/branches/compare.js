/** Two branches side by side: each answers, both can be asked at once, and their differences. */

import * as api from '../core/api.js';
import { branchName, button, loading } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon, stateTag } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { compareAddress, go, momentAddress } from '../core/route.js';
import { count, seen } from '../core/words.js';
import { ask, focusOn } from '../session/actions.js';
import { composer } from '../session/composer.js';
import { conversation, toEnd } from '../session/conversation.js';
import { titled } from '../session/paths.js';
import { tabBar } from '../inspector/inspector.js';
import { ui } from '../state.js';
import { mergePanel } from './merge.js';

const both = { isOpen: false, text: '' };
const read = { key: '', data: null, problem: '' };
const PANES = [['first', 'First'], ['second', 'Second'], ['differences', 'Differences']];

/** Open the field that asks both branches. */
export function askBoth() {
  both.isOpen = true;
  changed();
  focusOn('.ask-both textarea');
}

/** Return the screen that compares two branches of a session. */
export function compareScreen(session) {
  const names = [ui.place.branch, ui.place.other];
  if (!names.every((name) => session.tree.has(name))) return h('main', { class: 'compare' }, loading());
  const common = commonRounds(session, ...names);
  const pane = ui.comparePane ?? 'first';
  const choose = (name) => {
    ui.comparePane = name;
    changed();
  };
  return h('main', { class: `compare show-${pane}` },
    h('div', { class: 'compare-head' },
      icon('compare'), h('h2', {}, 'Compare'), h('span', { class: 'muted' }, common.count ? `${common.count === 1 ? 'round 1' : `rounds 1 to ${common.count}`} of ${titled(session, common.branch)} ${common.count === 1 ? 'is' : 'are'} common to both` : 'no common rounds'),
      h('span', { class: 'end row' }, button('Ask both', askBoth, { key: 'B' }), button('Swap', () => go(compareAddress(session.id, names[1], names[0]))), otherChoice(session, names),
        h('a', { class: 'button', href: momentAddress(session.id, names[0]) }, 'Close'))),
    h('div', { class: 'compare-tabs' }, tabBar(PANES.map(([name, title], at) => [name, names[at] ? titled(session, names[at]) : title]), pane, choose, 'compare-panel')),
    both.isOpen ? bothForm(session, names) : null,
    h('div', { class: 'sides', id: 'compare-panel' }, names.map((name, at) => side(session, name, common.count, at ? 'second' : 'first'))),
    differencesPane(session, names));
}

function commonRounds(session, one, other) {
  const [first, second] = [session.path(one), session.path(other)];
  let number = 0;
  while (number < first.length && first[number] === second[number]) number += 1;
  return { count: number, branch: first[number - 1]?.branch ?? '' };
}

function otherChoice(session, [first, second]) {
  const onchange = (event) => go(compareAddress(session.id, first, event.target.value));
  return h('select', { 'aria-label': 'Compare with', value: second, onchange }, session.branches.filter((one) => one.name !== first).map((one) => h('option', { key: one.name, value: one.name }, titled(session, one.name))));
}

function side(session, name, common, slot) {
  const node = session.tree.get(name);
  const state = session.stateOf(name);
  const total = session.path(name).length;
  const window = session.windowOf(name, null);
  if (!window.isNarrowed) Object.assign(window, { first: Math.max(window.first, common + 1), isNarrowed: true });
  return h('section', { class: `side ${slot}`, 'aria-label': titled(session, name), key: name },
    h('div', { class: 'pane-head' }, branchName(titled(session, name), node.colour), h('span', { class: 'muted' }, count(total - common, 'round')), state === 'idle' ? null : stateTag(state)),
    conversation(session, { branch: name, number: total, isPast: false }, slot),
    composer(session, name, slot));
}

function bothForm(session, names) {
  const close = () => {
    both.isOpen = false;
    changed();
  };
  const send = async (event) => {
    event?.preventDefault();
    const text = both.text.trim();
    if (!text) return;
    Object.assign(both, { text: '', isOpen: false });
    toEnd('first');
    toEnd('second');
    await Promise.all(names.map((name) => ask(session, name, text)));
  };
  const onkeydown = (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) send(event);
    if (event.key === 'Escape') {
      event.stopPropagation();
      close();
    }
  };
  const oninput = (event) => {
    both.text = event.target.value;
    changed();
  };
  return h('form', { class: 'ask-both', onsubmit: send }, h('textarea', { rows: 1, 'aria-label': `Ask ${names.map((name) => titled(session, name)).join(' and ')}`, placeholder: `Ask ${names.map((name) => titled(session, name)).join(' and ')}`, value: both.text, oninput, onkeydown }),
    h('button', { type: 'submit', class: 'button primary', disabled: !both.text.trim() }, 'Ask both'), button('Close', close, { kind: 'quiet' }));
}

function differencesPane(session, names) {
  const key = [session.id, ...names, session.index.length, ...names.map((name) => session.path(name).at(-1)?.state)].join('/');
  if (read.key !== key) {
    read.key = key;
    load(session, names, key);
  }
  return h('aside', { class: 'data-pane differences', 'aria-label': 'Differences', hidden: ui.panes.isDataHidden },
    h('div', { class: 'pane-head' }, h('h2', {}, 'Differences')),
    h('div', { class: 'tab-panel', tabindex: 0, role: 'group', 'aria-label': 'Differences' }, read.problem ? h('p', { class: 'failed-text pad' }, read.problem) : read.data ? differences(read.data, names.map((name) => titled(session, name))) : loading(),
      mergePanel(session, names)));
}

async function load(session, [first, second], key) {
  try {
    const data = await api.get(`${session.where}/differences`, { first, second });
    if (read.key === key) Object.assign(read, { data, problem: '' });
  } catch (error) {
    if (read.key === key) Object.assign(read, { data: null, problem: error.message });
  }
  changed();
}

function differences(data, names) {
  return [
    pairs('Variables', 'variable', data.variables, names, data.equal_variables),
    pairs('Files', 'file', data.files, names, data.equal_files),
    pairs('Core memory', 'key', data.memory, names, data.equal_memory),
    data.facts ? facts(data, names) : null,
  ];
}

function pairs(title, noun, found, names, equal) {
  const rows = Object.entries(found);
  const short = (text) => (text === null || text === undefined ? '–' : seen(text).replace(/^DataFrame (\d+)x(\d+).*$/s, 'DataFrame $1\u00a0×\u00a0$2').slice(0, 80));
  return h('section', { class: 'data-section' }, h('h3', {}, title),
    rows.length ? h('table', { class: 'pairs' }, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, noun), names.map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, rows.map(([name, [one, other]]) => h('tr', { key: name }, h('th', { scope: 'row' }, seen(name)), h('td', { title: seen(one) }, short(one)), h('td', { title: seen(other) }, short(other)))))) : h('p', { class: 'muted' }, 'No difference.'),
    equal ? h('p', { class: 'muted caption' }, `${equal} more ${equal === 1 ? 'is' : 'are'} equal`) : null);
}

function facts(data, names) {
  const own = data.facts.flatMap((list, at) => list.map((fact) => h('p', {}, h('b', {}, `${names[at]}: `), seen(fact.text))));
  return own.length ? h('section', { class: 'data-section' }, h('h3', {}, 'Facts'), own) : null;
}
