/** A figure or another file that a cell made: its room is kept before it is here. */

import * as api from '../core/api.js';
import { button } from '../core/bits.js';
import { h, local } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { bytes, seen } from '../core/words.js';
import { PICTURE, openable, pictureSize } from './picture.js';

const FRAME = /\.html?$/i;

/** Return the figure at a path of a round. */
export function figure(session, round, path) {
  if (session.isReadOnly && !PICTURE.test(path)) return h('p', { key: `file-${path}`, class: 'file-row' }, icon('file'), seen(path));
  const facts = session.artifacts.get(`${round.id}/${path}`);
  if (FRAME.test(path)) return frame(session, round, path);
  if (!PICTURE.test(path)) return fileRow(session, round, path, facts);
  const style = facts?.width ? { 'aspect-ratio': `${facts.width} / ${facts.height}`, 'max-width': `${facts.width}px` } : {};
  return h('figure', { key: `figure-${path}` },
    h('div', { class: `paper${facts?.width || session.pictures ? '' : ' unknown'}`, style }, openable(session, round.branch, path, facts)),
    h('figcaption', {}, h('span', { class: 'muted' }, seen(path)), pictureSize(facts), button('Save', () => api.save(session.where, path, round.branch), { kind: 'quiet', sign: 'save' })));
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
        set({ url: api.ROOT + made.url.slice(1), problem: '' });
      } catch (error) {
        set({ url: null, problem: error.message });
      }
    };
    if (state.url) return h('iframe', { src: state.url, sandbox: 'allow-scripts', title: `Interactive figure ${seen(path)}` });
    return h('div', { class: 'row' }, icon('data'), h('span', {}, seen(path)), button('Run this figure', run, { kind: 'small' }),
      button('Save', () => api.save(session.where, path, round.branch), { kind: 'quiet', sign: 'save' }), state.problem ? h('span', { class: 'failed-text' }, state.problem) : null);
  });
}
