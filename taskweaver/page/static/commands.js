/** Every command by name and key; those that work where one is. */

import { isAble } from './core/abilities.js';
import { changed } from './core/loop.js';
import { pref } from './core/prefs.js';
import { go, momentAddress, searchAddress } from './core/route.js';
import { closeFork, compare, focusOn, goTo, goToNext, openFork, stop } from './session/actions.js';
import { toEnd } from './session/conversation.js';
import { later, withModule } from './later.js';
import { deleteSession, renameBranch, renameSession, undoRound } from './session/changes.js';
import { chooseModel, mayChoose } from './models/chip.js';
import { takeChoice } from './start/choices.js';
import { here, openWay, toggleInspector, ui } from './state.js';

/** Return the commands that work here: `{text, words, key, run}`; `words` are others by which they are found. */
export function commandsHere() {
  const { session } = ui;
  const isSession = session?.isLoaded && ['session', 'compare'].includes(ui.place.kind);
  const everywhere = [
    { text: 'Start, files and sessions', words: 'home new session upload add file data delete', run: () => go('#/') },
    { text: 'Searches', words: 'experiments attempts optimize', run: () => go(searchAddress()) },
    ...(ui.place.kind === 'searches' ? [] : [{ text: 'Add a file', words: 'upload attach data csv excel new', run: () => document.querySelector('.composer input[type=file]')?.click() }]),
    ...projectCommands(),
    { text: 'Help and keys', key: '?', run: openHelp },
  ];
  return [...(isSession ? sessionCommands(session) : []), ...(ui.place.kind === 'searches' ? (later.searches.module?.treeKeys() ?? []) : []), ...everywhere];
}

/** Return the commands for the project of the server: `{text, run}`; only an admin is let do them. */
export function projectCommands() {
  return [
    mayChoose() ? { text: 'Choose a model', words: 'model key provider llm api ollama openai settings', run: chooseModel } : null,
    { text: 'Settings', words: 'configuration options preferences theme dark light model key project', run: openSettings },
    isAble('post', 'doctor') ? { text: 'Check what works here', words: 'doctor problems test', run: () => withModule(later.doctor, (found) => found.openDoctor()) } : null,
  ].filter(Boolean);
}

/** Return the ways to save the conversation until a moment: `[text, run]`. */
export function exportsOf(session, moment) {
  return ['page', 'notebook', 'script'].map((kind) => [`Export as ${kind}`, () => withModule(later.export, (found) => found.exportAs(session, moment, kind))]);
}

/** Show the settings. */
export function openSettings() {
  return withModule(later.settings, (found) => found.openSettings());
}

/** Find: commands by name, and passages of all conversations. */
export function openPalette() {
  return withModule(later.palette, (found) => found.openPalette());
}

/** Show the help. */
export function openHelp() {
  return withModule(later.help, (found) => found.openHelp());
}

function show(name, value) {
  ui[name] = value;
  changed();
}

function sessionCommands(session) {
  const moment = here(session);
  const isComparing = ui.place.kind === 'compare';
  const toggleTree = () => {
    ui.panes.isTreeHidden = !ui.panes.isTreeHidden;
    changed();
  };
  return [
    { text: 'Write a question', key: '/', run: () => focusOn('.composer textarea') },
    { text: 'Fork here', key: 'f', run: () => openFork(session, moment.branch, moment.number) },
    { text: 'Compare two branches', words: 'diff difference', key: 'c', run: () => (isComparing ? goTo(session, moment.branch) : compareNext(session, moment)) },
    ...(isComparing ? [{ text: 'Ask both', key: 'b', run: () => later.compare.module?.askBoth() }] : []),
    { text: 'Map of the tree', key: 'm', run: () => show('map', !ui.map) },
    { text: 'Branches, show or hide', key: 't', run: toggleTree },
    { text: 'Inspector, show or hide', key: 'd', run: toggleInspector },
    { text: 'Next round', key: 'j', run: () => step(session, moment, 1) },
    { text: 'Previous round', key: 'k', run: () => step(session, moment, -1) },
    { text: 'Next branch', key: ']', run: () => stepBranch(session, moment, 1) },
    { text: 'Previous branch', key: '[', run: () => stepBranch(session, moment, -1) },
    { text: 'Next that asks or runs', key: 'g', run: () => goToNext(session, ['asks', 'running']) },
    { text: 'Open or fold all code', key: 'o', run: () => show('allCode', !ui.allCode) },
    { text: 'Rename the session', words: 'title name', key: 'r', run: () => renameSession(session) },
    ...(isComparing ? [] : [{ text: 'Rename the branch', words: 'title name', key: 'F2', run: () => renameBranch(session, moment.branch) }]),
    { text: 'Undo the last round', key: 'u', run: () => undoRound(session, moment) },
    ...exportsOf(session, moment).map(([text, run]) => ({ text, words: 'export share download save send html jupyter ipynb python', run })),
    { text: 'Delete this session', words: 'remove', run: () => deleteSession(session) },
    { text: 'Follow the answer', key: 'End', run: () => toEnd() },
    { text: 'Stop the answer', run: () => stop(session, moment.branch) },
  ];
}

function compareNext(session, moment) {
  const other = session.branches.find((one) => one.name !== moment.branch);
  if (other) compare(session, other.name);
}

function step(session, moment, by) {
  const next = moment.number + by;
  if (next < 1) return;
  goTo(session, moment.branch, Math.min(next, moment.total));
}

function stepBranch(session, moment, by) {
  const names = session.branches.map((one) => one.name);
  goTo(session, names[(names.indexOf(moment.branch) + by + names.length) % names.length]);
  openWay(session);
}

let escapedAt = 0;

/** Handle a key of the page. */
export function onKey(event) {
  if (event.defaultPrevented) return;
  const isField = event.target.matches?.('input, textarea, select, [contenteditable]');
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.key === 'Escape') escape(event);
  if (event.ctrlKey || event.metaKey || event.altKey || isField || ui.palette || ui.dialog) return;
  if (event.key.length === 1 && !pref('letters', true) && event.key !== '?' && event.key !== '/') return;
  if (takeChoice(event.key)) return;
  const wanted = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const found = commandsHere().find((one) => one.key === wanted);
  if (!found) return;
  event.preventDefault();
  found.run();
}

/** Close the top thing, then leave a past moment; only then, pressed twice, stop. */
function escape(event) {
  if (ui.palette || ui.dialog) return null;
  if (ui.fork) return closeFork();
  if (ui.map) return show('map', false);
  if (event.target.matches?.('.composer textarea')) event.target.blur();
  const { session } = ui;
  if (!session?.isLoaded || ui.place.kind !== 'session') return null;
  const moment = here(session);
  if (moment.isPast) return go(backAddress(session));
  const now = Date.now();
  if (now - escapedAt < 1000 && session.stateOf(moment.branch) !== 'idle') stop(session, moment.branch);
  escapedAt = now;
  return null;
}

/** Return the address of the last moment that was not a past one. */
export function backAddress(session) {
  const branch = session.lastLive ?? here(session).branch;
  return momentAddress(session.id, branch);
}

