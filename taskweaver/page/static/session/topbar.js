/** The bar on top: where one is, what runs, and what asks. */

import { branchName, button, menu } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon, stateTag } from '../core/icons.js';
import { connection, retryNow } from '../core/stream.js';
import { go, momentAddress } from '../core/route.js';
import { money, roundTitle, seen } from '../core/words.js';
import { exportsOf, openHelp, openPalette, openSettings } from '../commands.js';
import { modelChip } from '../models/chip.js';
import { project } from '../start/files.js';
import { here, toggleInspector, ui } from '../state.js';
import { goToNext } from './actions.js';
import { branchesIn } from './branch_states.js';
import { renameBranch, renameSession } from './changes.js';
import { stepsTo, titled } from './paths.js';

/** Return the bar. */
export function topbar(session) {
  const isSearches = ui.place.kind === 'searches';
  return h('header', { class: 'topbar' },
    session ? h('a', { class: 'home', href: '#/', title: 'Start, files and sessions' }, icon('up'), h('h1', { class: 'session-name' }, seen(session.name))) : h('a', { class: 'home', href: '#/' }, isSearches ? h('h1', { class: 'session-name' }, 'TaskWeaver') : h('b', {}, 'TaskWeaver')),
    session?.isLoaded ? way(session) : h('span', { class: 'way muted' }, session ? null : seen(project.folder)),
    session ? states(session) : null,
    session ? button('Data', toggleInspector, { kind: 'quiet drawer-button', key: 'D', 'aria-pressed': String(ui.isDrawerOpen) }) : null,
    session?.cost ? h('span', { class: 'cost muted', title: 'Cost of this session since it was opened' }, money(session.cost)) : null,
    modelChip(),
    session?.isLoaded ? h('span', { class: 'wide' }, menu('share', 'Share', exportsOf(session, here(session)), false, 'Share')) : null,
    h('a', { class: 'button quiet wide', href: isSearches ? '#/' : '#/searches' }, isSearches ? 'Sessions' : 'Searches'),
    session ? null : button('Settings', openSettings, { kind: 'quiet wide' }),
    button('Find', openPalette, { kind: 'quiet wide', key: 'Ctrl K' }),
    button('', openPalette, { kind: 'quiet narrow', sign: 'find', label: 'Find' }),
    h('span', { class: session?.isLoaded ? '' : 'narrow' }, menu('more', 'More', more(session?.isLoaded ? session : null))),
    session?.isLoaded ? null : button('', openHelp, { kind: 'quiet wide', sign: 'ask', label: 'Help and keys' }));
}

function more(session) {
  return [
    ...(session ? [['Rename session', () => renameSession(session)], ['Rename branch', () => renameBranch(session, here(session).branch)], ...exportsOf(session, here(session))] : []),
    ['Searches', () => go('#/searches')], ['Settings', openSettings], ['Help and keys', openHelp],
  ];
}

function way(session) {
  const { branch, number } = here(session);
  const other = ui.place.kind === 'compare' ? ui.place.other : '';
  const end = (name) => [branchName(titled(session, name), session.tree.get(name)?.colour ?? 0), h('span', {}, String(session.path(name).length))];
  if (other) return h('nav', { class: 'way', 'aria-label': 'Compared' }, h('span', { class: 'step here' }, end(branch)), h('span', { class: 'muted' }, '|'), h('span', { class: 'step here' }, end(other)));
  const steps = stepsTo(session.tree, branch, number);
  return h('nav', { class: 'way', 'aria-label': 'Path to here' }, steps.map((step, at) => {
    const colour = session.tree.get(step.branch)?.colour ?? 0;
    const isLast = at === steps.length - 1;
    const text = [branchName(titled(session, step.branch), colour), step.round ? [icon('right'), h('span', {}, String(step.round))] : null];
    if (isLast) return h('span', { key: step.branch, class: 'step here', 'aria-current': 'location' }, text);
    return h('a', { key: step.branch, class: 'step', href: momentAddress(session.id, step.branch, step.round || null) }, text, icon('right'));
  }));
}

function titles(session, state) {
  return branchesIn(session, state).map((name) => titled(session, name)).join(', ');
}

const STATE_TEXTS = { running: (number) => `${number} running`, asks: (number) => `${number} ${number === 1 ? 'asks' : 'ask'} you`, failed: (number) => `${number} failed` };

/** What runs, asks or failed in the session: each leads to the next such branch. */
function states(session) {
  const found = Object.keys(STATE_TEXTS).map((state) => [state, branchesIn(session, state).length]).filter(([, number]) => number);
  return h('div', { class: 'states' }, found.map(([state, number]) => h('button', {
    key: state, type: 'button', class: `state-button is-${state}`, title: `Go to the next: ${titles(session, state)}`, onclick: () => goToNext(session, [state]),
  }, stateTag(state, STATE_TEXTS[state](number)))));
}

/** Return the bar that says that the server is gone, with the time until the next attempt. */
export function offlineBar() {
  if (connection.isOpen) return null;
  const mount = (element) => {
    const tick = () => {
      const left = Math.max(0, Math.ceil(((connection.retryAt ?? Date.now()) - Date.now()) / 1000));
      element.textContent = left ? `Trying again in ${left} s.` : 'Trying now.';
    };
    tick();
    const id = setInterval(tick, 250);
    return () => clearInterval(id);
  };
  return h('div', { class: 'offline', role: 'alert' }, h('b', {}, 'Connection lost.'), h('span', { mount }), button('Now', retryNow, { kind: 'small' }), h('span', { class: 'muted' }, 'What is typed is kept.'));
}

/** Return the bar of a past moment, with the way to fork it and the way back. */
export function momentBar(session, moment, onFork, onBack, backText) {
  return h('div', { class: 'moment-bar', role: 'region', 'aria-label': 'A past moment' },
    h('p', {}, h('b', {}, `${titled(session, moment.branch)}, round ${moment.number}, as it was.`), ' Read only.', h('span', { class: 'moment-title shrink' }, roundTitle(session.path(moment.branch)[moment.number - 1]?.title))),
    button('Fork here', onFork, { kind: ui.fork ? '' : 'primary', disabled: Boolean(ui.fork), sign: 'fork', key: 'F' }), button(backText, onBack, { key: 'Esc' }));
}

