/** Files of a moment, with a preview of those that are there. */

import * as api from '../core/api.js';
import { button } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { bytes, seen } from '../core/words.js';
import { PICTURE, openable } from '../session/picture.js';
import { upload } from '../session/composer.js';
import { codeBlock } from '../text/highlight.js';

const PREVIEW_BYTES = 20_000;
const TEXT = /\.(?:csv|tsv|txt|md|json|py|sql|log|ya?ml|toml|html?|xml|ini)$/i;

const listed = { key: '', files: null, problem: '' };
const preview = { key: '', text: null, problem: '' };

/** Return the tab of files. */
export function filesTab(session, moment) {
  const key = [session.id, moment.branch, moment.isPast ? moment.number : '', session.index.length, session.filesVersion ?? 0, session.path(moment.branch).at(-1)?.state].join('/');
  if (listed.key !== key) {
    listed.key = key;
    load(session, moment, key);
  }
  const files = listed.files ?? [];
  return h('section', { class: 'data-section' },
    h('div', { class: 'section-head' }, h('h3', {}, moment.isPast ? `Files at round ${moment.number}` : 'Files'), h('span', { class: 'end' }, listed.files ? String(files.length) : '')),
    listed.problem ? h('p', { class: 'failed-text' }, seen(listed.problem)) : null,
    listed.files && !files.length ? h('p', { class: 'muted' }, moment.isPast ? 'No list of files was kept of this round.' : 'None yet: drop a file anywhere on the page.') : null,
    h('ul', { class: 'files' }, files.map((file) => row(session, moment, file))),
    moment.isPast ? null : h('label', { class: 'button small' }, icon('file'), 'Add files', h('input', { type: 'file', multiple: true, class: 'unseen', onchange: (event) => upload(session, moment.branch, [...event.target.files]) })));
}

async function load(session, moment, key) {
  try {
    const data = moment.isPast
      ? (await api.get(`${session.where}/branches/${api.path(moment.branch)}/rounds/${moment.number}`)).files
      : await api.get(`${session.where}/files`, { branch: moment.branch });
    if (listed.key === key) Object.assign(listed, { files: data?.files ?? [], problem: '' });
  } catch (error) {
    if (listed.key === key) Object.assign(listed, { files: [], problem: error.message });
  }
  changed();
}

const NOW = { changed: 'changed since', gone: 'no longer there' };

function row(session, moment, file) {
  const isOpen = preview.key === `${moment.branch}/${file.path}`;
  const isThere = file.now !== 'gone';
  const toggle = () => {
    Object.assign(preview, { key: isOpen ? '' : `${moment.branch}/${file.path}`, text: null, problem: '' });
    if (!isOpen && TEXT.test(file.path) && isThere) readStart(session, moment, file);
    changed();
  };
  return h('li', { key: file.path },
    h('button', { type: 'button', class: 'variable', 'aria-expanded': String(isOpen), onclick: toggle }, h('span', { class: file.is_changed ? 'changed-dot' : 'no-dot' }), h('span', { class: 'shrink' }, seen(file.path)),
      h('span', { class: 'muted end' }, [NOW[file.now], bytes(file.size)].filter(Boolean).join(', '))),
    isOpen ? h('div', { class: 'variable-more' }, isThere ? shown(session, moment, file) : h('p', { class: 'muted' }, 'Contents of past files are not kept.')) : null);
}

function shown(session, moment, file) {
  const facts = { size: file.size };
  return [
    PICTURE.test(file.path) ? h('div', { class: 'paper' }, openable(session, moment.branch, file.path, facts)) : null,
    preview.problem ? h('p', { class: 'failed-text' }, preview.problem) : null,
    preview.text === null ? null : codeBlock(preview.text, file.path.split('.').pop(), `Beginning of ${seen(file.path)}`),
    preview.text !== null && file.size > PREVIEW_BYTES ? h('p', { class: 'muted caption' }, `The first ${bytes(PREVIEW_BYTES)}.`) : null,
    button('Save', () => api.save(session.where, file.path, moment.branch), { kind: 'small', sign: 'save' }),
  ];
}

async function readStart(session, moment, file) {
  const { key } = preview;
  const where = `${session.where}/files/${file.path.split('/').map(encodeURIComponent).join('/')}`;
  try {
    const response = await api.send('GET', where, { query: { branch: moment.branch }, headers: file.size > PREVIEW_BYTES ? { Range: `bytes=0-${PREVIEW_BYTES - 1}` } : {} });
    const text = await response.text();
    if (preview.key === key) preview.text = text;
  } catch (error) {
    if (preview.key === key) preview.problem = error.message;
  }
  changed();
}
