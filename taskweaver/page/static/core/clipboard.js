/** The clipboard, also where the page came without encryption: there browsers keep theirs from pages. */

import { notify } from '../state.js';
import { announce } from './announce.js';
import { changed } from './loop.js';

/** Copy a text, after a click of the person. */
export async function copyText(text) {
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else copySelected(text);
  announce('Copied.');
  notify('Copied.');
  changed();
}

/** Save a text as a file of the browser. */
export function saveText(text, name) {
  saveBlob(new Blob([text], { type: 'text/plain' }), name);
}

/** Save bytes as a file of the browser. */
export function saveBlob(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function copySelected(text) {
  const before = document.activeElement;
  const field = document.createElement('textarea');
  field.className = 'unseen';
  field.value = text;
  (document.querySelector('dialog[open]') ?? document.body).append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
  before?.focus();
}
