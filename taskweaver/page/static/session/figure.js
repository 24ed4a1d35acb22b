/** A figure or another file that a cell made: its room is kept before it is here. */

import * as api from '../core/api.js';
import { button } from '../core/bits.js';
import { picture } from '../core/blobs.js';
import { h, local } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { bytes, seen } from '../core/words.js';

const PICTURE = /\.(?:png|jpe?g|gif|webp|svg)$/i;
const FRAME = /\.html?$/i;

/** Return the figure at a path of a round. */
export function figure(session, round, path) {
  if (session.isReadOnly && !PICTURE.test(path)) return h('p', { key: `file-${path}`, class: 'file-row' }, icon('file'), seen(path));
  const facts = session.artifacts.get(`${round.id}/${path}`);
  if (FRAME.test(path)) return frame(session, round, path);
  if (!PICTURE.test(path)) return fileRow(session, round, path, facts);
  const style = facts?.width ? { 'aspect-ratio': `${facts.width} / ${facts.height}`, 'max-width': `${facts.width}px` } : {};
  return h('figure', { key: `figure-${path}` },
    h('div', { class: `paper${facts?.width || session.pictures ? '' : ' unknown'}`, style }, image(session, round.branch, path, facts)),
    h('figcaption', {}, h('span', { class: 'muted' }, seen(path)), size(facts), button('Save', () => api.save(session.where, path, round.branch), { kind: 'quiet', sign: 'save' })));
}

/** Return the picture of a file; a large one is a reduced copy that the server makes. */
export function image(session, branch, path, facts) {
  const where = `${session.where}/files/${path.split('/').map(encodeURIComponent).join('/')}`;
  const query = { branch };
  if (session.pictures) return embedded(session, path);
  const found = picture(where, query, () => session.touch());
  if (found.problem) return h('p', { class: 'broken muted' }, icon('warn'), `This picture cannot be shown: ${found.problem}`);
  if (!found.url) return h('span', { class: 'bar paper-bar' });
  const onerror = () => {
    found.problem = 'its content is no picture.';
    session.touch();
  };
  return h('img', { src: found.url, alt: facts?.text || seen(path), width: facts?.width, height: facts?.height, decoding: 'async', onerror });
}

/** A picture of a file that holds its bytes; one that was too large for it is named. */
function embedded(session, path) {
  const src = session.pictures[path];
  return src ? h('img', { src, alt: seen(path) }) : h('p', { class: 'broken' }, `${seen(path)} is not in this file.`);
}

function size(facts) {
  if (!facts) return null;
  const pixels = facts.width ? `${facts.width} × ${facts.height}` : '';
  return h('span', { class: 'muted' }, [pixels, bytes(facts.size)].filter(Boolean).join(', '));
}

function fileRow(session, round, path, facts) {
  return h('p', { key: `file-${path}`, class: 'file-row' }, icon('file'), h('span', {}, seen(path)), h('span', { class: 'muted' }, bytes(facts?.size)),
    button('Save', () => api.save(session.where, path, round.branch), { kind: 'quiet', sign: 'save' }));
}

/** An interactive figure runs on request only, in a frame without network or origin. */
function frame(session, round, path) {
  return local({ key: `frame-${path}`, class: 'frame-box' }, { url: null, problem: '' }, (state, set) => {
    const run = async () => {
      try {
        const where = `${session.where}/links/${path.split('/').map(encodeURIComponent).join('/')}`;
        const made = await api.post(where, { purpose: 'frame' }, { branch: round.branch });
        set({ url: made.url, problem: '' });
      } catch (error) {
        set({ url: null, problem: error.message });
      }
    };
    if (state.url) return h('iframe', { src: state.url, sandbox: 'allow-scripts', title: `Interactive figure ${seen(path)}` });
    return h('div', { class: 'row' }, icon('data'), h('span', {}, seen(path)), button('Run this figure', run, { kind: 'small' }),
      button('Save', () => api.save(session.where, path, round.branch), { kind: 'quiet', sign: 'save' }), state.problem ? h('span', { class: 'failed-text' }, state.problem) : null);
  });
}
