/** Screens that are not shown at first: their modules are fetched when they are. */

import { button, failure, loading } from './core/bits.js';
import { h } from './core/dom.js';
import { changed } from './core/loop.js';
import { notify } from './state.js';

const LOST = 'The server is not there, or has another version now: load the page again. What is typed is kept.';

/** Modules that come when they are first asked for. */
export const later = {
  searches: part(() => import('./searches/screen.js'), 'searches'),
  compare: part(() => import('./branches/compare.js'), 'compare'),
  map: part(() => import('./branches/map.js')),
  settings: part(() => import('./project/settings.js')),
  doctor: part(() => import('./project/doctor.js')),
  models: part(() => import('./models/dialog.js'), 'models'),
  cards: part(() => import('./session/file_cards.js')),
  signIn: part(() => import('./sessions/sign_in.js')),
  export: part(() => import('./session/export.js')),
  table: part(() => import('./session/save_table.js')),
  uploads: part(() => import('./session/uploads.js')),
  sample: part(() => import('./start/sample.js')),
  names: part(() => import('./session/completion.js')),
  palette: part(() => import('./palette.js')),
  help: part(() => import('./help.js')),
  fork: part(() => import('./session/fork_panel.js')),
  frame: part(() => import('./inspector/frame.js')),
  files: part(() => import('./inspector/files.js')),
  figures: part(() => import('./inspector/figures.js')),
  memory: part(() => import('./inspector/memory.js')),
  why: part(() => import('./inspector/why.js')),
};

function part(fetchIt, ...styles) {
  return { fetchIt, styles, module: null, coming: null, isLost: false };
}

const sheets = {};

/** Fetch a sheet of styles once. */
function fetchStyles(name) {
  const first = document.querySelector('link[rel=stylesheet]');
  return first && (sheets[name] ??= new Promise((done) => {
    document.head.append(Object.assign(document.createElement('link'), { rel: 'stylesheet', href: first.href.replace(/\w+\.css$/, `${name}.css`), onload: done, onerror: done }));
  }));
}

/** Return a module once it is here, null if it cannot be loaded; the page is drawn when that is known. */
export function load(wanted) {
  wanted.coming ??= Promise.all([wanted.fetchIt(), ...['more', ...wanted.styles].map(fetchStyles)]).then(([found]) => (wanted.module = found), () => {
    wanted.isLost = true;
    return null;
  }).finally(changed);
  return wanted.coming;
}

/** Do work with a module once it is here; return its result. */
export async function withModule(wanted, work) {
  const found = await load(wanted);
  return found ? work(found) : notify(LOST);
}

/** Return what `view(module)` gives, bars until the module is here, or what to do if it does not come. */
export function shown(wanted, view) {
  if (wanted.module) return view(wanted.module);
  load(wanted);
  // A browser may keep a module that failed as failed: only a document that is loaded anew asks again.
  const again = () => button('Load the page again', () => location.reload(), { kind: 'primary' });
  return h('div', { class: 'centre' }, wanted.isLost ? failure('This part of the page could not be loaded', LOST, again()) : loading(6));
}
