/** Data files of the project and of sessions: their rows and columns, and questions that fit them. */

import * as api from '../core/api.js';
import { button } from '../core/bits.js';
import { h, local } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { bytes, count, seen } from '../core/words.js';
import { later, withModule } from '../later.js';

const LOOK_MS = 1000;
const MOST_CARDS = 5;

/** What is known of the project's files. */
export const project = { isLoaded: false, problem: '', folder: '', files: [], questions: [] };

/** Read the project's files; again while some of them are being read and `isWanted()`. */
export async function readProject(isWanted) {
  try {
    Object.assign(project, await api.get('files'), { isLoaded: true, problem: '' });
  } catch (error) {
    Object.assign(project, { isLoaded: true, problem: error.message });
  }
  if (project.files.some((file) => file.is_being_read) && isWanted()) setTimeout(() => isWanted() && readProject(isWanted), LOOK_MS);
  changed();
}

/** Return rows, columns and size of a file in words. */
export function factsOf(file) {
  const columns = file.columns.length ? count(file.columns.length, 'column') : '';
  return [file.rows === null ? '' : count(file.rows, 'row'), columns, bytes(file.size)].filter(Boolean).join(' · ');
}

/** Return the section of the project's files; `open(name)` begins a session about one, `take(files)` takes new ones. */
export function filesSection(open, take) {
  const { files, folder } = project;
  if (project.isLoaded && !files.length) return emptyFolder(take);
  return h('section', { class: 'files-section', 'aria-label': 'Files' },
    h('div', { class: 'row section-title' }, h('h2', {}, 'Files', h('span', { class: 'wide-only' }, folder ? ` in ${seen(folder)}` : '')), h('span', { class: 'muted' }, h('span', {}, count(files.length, 'file')), h('span', { class: 'wide-only' }, '. Click one to see what is in it.'))),
    h('ul', { class: 'file-cards' }, files.slice(0, MOST_CARDS).map((file) => h('li', { key: file.name }, card(file, open))), h('li', { class: `drop-card after-${files.slice(0, MOST_CARDS).length % 3}`, key: 'drop' }, dropZone(take))),
    files.length > MOST_CARDS ? allFiles(files, open) : null,
    files.some((file) => file.is_being_read) && !project.questions.length ? h('p', { class: 'muted' }, 'Questions appear when the first file has been read. You can ask at once.') : null);
}

function card(file, open) {
  const names = file.columns.map((one) => seen(one.name)).join(', ');
  if (file.problem) return h('div', { class: 'file-card unreadable' }, title(file), h('span', { class: 'failed-text row' }, icon('cross'), seen(file.problem)), h('span', { class: 'caption muted' }, 'The other files are not affected.'));
  return h('button', { type: 'button', class: 'file-card', onclick: () => open(file.name) }, title(file), h('span', {}, factsOf(file)),
    file.is_being_read ? [h('span', { class: 'bar w1' }), h('span', { class: 'bar w2' })] : h('span', { class: 'caption muted shrink' }, names));
}

function title(file) {
  return h('b', { class: 'row' }, icon('data'), h('span', { class: 'shrink' }, seen(file.name)));
}

/** All files as a list with a filter. */
function allFiles(files, open) {
  return local({}, null, (wanted, set) => {
    if (wanted === null) return button(`All ${count(files.length, 'file')}`, () => set(''), { kind: 'link' });
    const shown = files.filter((file) => file.name.toLowerCase().includes(wanted.toLowerCase()));
    return [
      h('input', { type: 'search', 'aria-label': 'Find a file', placeholder: 'Find a file', value: wanted, oninput: (event) => set(event.target.value) }),
      h('ul', { class: 'file-list' }, shown.map((file) => h('li', { key: file.name }, h('button', { type: 'button', class: 'variable', onclick: () => open(file.name) }, icon('data'), h('span', { class: 'shrink' }, seen(file.name)), h('span', { class: 'muted end' }, factsOf(file)))))),
      shown.length ? null : h('p', { class: 'muted' }, 'No file has this name.'),
    ];
  });
}

function dropZone(take) {
  return h('label', { class: 'drop-zone' }, icon('upload'), h('span', {}, h('span', { class: 'wide-only' }, h('b', {}, 'Drop a file here'), ' or ', h('span', { class: 'as-link' }, 'choose one')), h('b', { class: 'narrow-only' }, 'Add a file'),
    h('div', { class: 'caption muted wide-only' }, 'CSV, Excel, Parquet, JSON or SQLite, also zipped. It is copied into a new session.')),
  h('input', { type: 'file', multiple: true, class: 'unseen', 'aria-label': 'Add files in a new session', onchange: (event) => take([...event.target.files]) }));
}

function emptyFolder(take) {
  return h('section', { class: 'files-section is-empty', 'aria-label': 'Files' }, h('h2', {}, project.problem ? 'The files of the folder cannot be listed.' : 'There are no data files in this folder.'), project.problem ? h('p', { class: 'failed-text' }, seen(project.problem)) : null,
    h('div', { class: 'file-cards' }, h('div', { class: 'drop-card after-0' }, dropZone(take))),
    h('div', { class: 'row' }, button('Try it with sample orders', () => withModule(later.sample, (found) => take([found.sampleOrders()])), { sign: 'data' }), h('span', { class: 'caption muted' }, '400 rows, made up')));
}
