/** The clipboard, also where the page came without encryption: there browsers keep theirs from pages. */

import { announce } from './announce.js';

/** Copy a text, after a click of the person. */
export async function copyText(text) {
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else copySelected(text);
  announce('Copied.');
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
