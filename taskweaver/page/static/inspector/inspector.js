/** The inspector: data of the moment that is shown, by tabs. */

import { h } from '../core/dom.js';
import { changed } from '../core/loop.js';
import { ui } from '../state.js';
import { later, shown } from '../later.js';
import { variablesTab } from './variables.js';

const TABS = [
  ['data', 'Data', variablesTab], ['files', 'Files', (...here) => shown(later.files, (found) => found.filesTab(...here))], ['figures', 'Figures', (...here) => shown(later.figures, (found) => found.figuresTab(...here))],
  ['memory', 'Memory', (...here) => shown(later.memory, (found) => found.memoryTab(...here))], ['why', 'Why', (...here) => shown(later.why, (found) => found.whyTab(...here))],
];

/** Return the inspector of a moment, or the fork that is prepared in its place. */
export function inspector(session, moment) {
  const [chosen, , view] = TABS.find(([name]) => name === ui.tab) ?? TABS[0];
  const choose = (name) => {
    ui.tab = name;
    changed();
  };
  return h('aside', { class: `data-pane${ui.fork ? ' forking' : ''}`, 'aria-label': 'Data', hidden: ui.panes.isDataHidden },
    h('h2', { class: 'unseen' }, 'Data'),
    tabBar(TABS, chosen, choose),
    ui.fork ? shown(later.fork, (found) => found.forkPanel(session)) : null,
    h('div', { class: 'tab-panel', role: 'tabpanel', id: 'tab-panel', 'aria-labelledby': `tab-${chosen}`, tabindex: 0, key: `${chosen}-${moment.branch}` }, view(session, moment)));
}

/** Return a bar of tabs; arrows go from one to the next. */
export function tabBar(tabs, chosen, choose, controls = 'tab-panel') {
  const onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = tabs.findIndex(([name]) => name === chosen);
    const [next] = tabs[(at + step + tabs.length) % tabs.length];
    choose(next);
    event.currentTarget.querySelector(`#tab-${next}`).focus();
  };
  return h('div', { class: 'tabs', role: 'tablist', onkeydown }, tabs.map(([name, title]) =>
    h('button', { key: name, type: 'button', role: 'tab', id: `tab-${name}`, class: 'tab', 'aria-selected': String(name === chosen), 'aria-controls': controls, tabindex: name === chosen ? 0 : -1, onclick: () => choose(name) }, title)));
}
