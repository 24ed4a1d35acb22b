/** Pictures of a session's files: scaled to their place in the page, in their own size on request. */

import * as api from '../core/api.js';
import { button, dialog } from '../core/bits.js';
import { picture } from '../core/blobs.js';
import { h } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { bytes, seen } from '../core/words.js';
import { showDialog } from '../state.js';

/** Names of files that are shown as pictures. */
export const PICTURE = /\.(?:png|jpe?g|gif|webp|svg)$/i;

/** Return a picture that opens in its own size. */
export function openable(session, branch, path, facts) {
  const shown = image(session, branch, path, facts);
  if (session.isReadOnly || shown.tag !== 'img') return shown;
  return h('button', { type: 'button', class: 'open-picture', 'aria-label': `Show ${seen(path)} in full size`, onclick: () => openPicture(session, branch, path, facts) }, shown);
}

function image(session, branch, path, facts) {
  if (session.pictures) return embedded(session, path);
  const where = `${session.where}/files/${api.path(...path.split('/'))}`;
  const found = picture(where, { branch }, () => session.pictureCame());
  if (found.problem) return h('p', { class: 'broken muted' }, icon('warn'), `This picture cannot be shown: ${found.problem}`);
  if (!found.url) return h('span', { class: 'bar paper-bar' });
  const onerror = () => {
    found.problem = 'its content is no picture.';
    session.pictureCame();
  };
  return h('img', { src: found.url, alt: facts?.text || seen(path), width: facts?.width, height: facts?.height, decoding: 'async', onerror });
}

/** A picture of a file that holds its bytes; one that was too large for it is named. */
function embedded(session, path) {
  const src = session.pictures[path];
  return src ? h('img', { src, alt: seen(path) }) : h('p', { class: 'broken' }, `${seen(path)} is not in this file.`);
}

/** Show a picture in its own size. */
function openPicture(session, branch, path, facts) {
  const close = () => showDialog(null);
  showDialog(() => dialog(seen(path), 'wide full-picture', close,
    h('div', { class: 'row' }, h('h2', { class: 'shrink' }, seen(path)), pictureSize(facts), h('span', { class: 'row end' },
      button('Save', () => api.save(session.where, path, branch), { kind: 'quiet', sign: 'save' }), button('Close', close, { kind: 'quiet' }))),
    h('div', { class: 'picture-scroll', tabindex: 0, role: 'group', 'aria-label': 'Picture' }, image(session, branch, path, facts))));
}

/** Return the size of a picture in pixels and bytes. */
export function pictureSize(facts) {
  if (!facts) return null;
  const pixels = facts.width ? `${facts.width} × ${facts.height}` : '';
  return h('span', { class: 'muted' }, [pixels, bytes(facts.size)].filter(Boolean).join(', '));
}
