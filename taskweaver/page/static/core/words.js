/** Numbers, sizes, times and foreign text in words. */

const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Return text with control characters of the writing direction as visible marks. */
export function seen(text) {
  return String(text ?? '').replace(BIDI, (char) => `‹U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}›`);
}

/** Return a count with its noun: `1 round`, `4 rounds`. */
export function count(number, noun, plural = `${noun}s`) {
  return `${grouped(number)} ${number === 1 ? noun : plural}`;
}

/** Return a number with separators of thousands. */
function grouped(number) {
  return Number(number).toLocaleString('en-US');
}

/** Return a size in bytes, rounded. */
export function bytes(size) {
  if (size === null || size === undefined) return '';
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let value = size;
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at === 0 || value >= 10 ? Math.round(value) : value.toFixed(1)} ${units[at]}`;
}

/** Return a duration: `0.8 s`, `74 s`, `12 min`. */
export function seconds(value) {
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  return `${(value / 3600).toFixed(1)} h`;
}

/** Return an amount of money in dollars. */
export function money(value) {
  return `$${value < 0.1 && value > 0 ? value.toFixed(4) : value.toFixed(2)}`;
}

/** Return a time: `today 14:05`, `yesterday`, `21 Nov`, `3 Feb 2024`. */
export function when(text) {
  const at = new Date(text);
  const now = new Date();
  if (at.toDateString() === now.toDateString()) return `today ${at.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })}`;
  if (at.toDateString() === new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1).toDateString()) return 'yesterday';
  return at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: at.getFullYear() === now.getFullYear() ? undefined : 'numeric' });
}

/** Return a value of a metric with few digits; an error needs two. */
export function metric(value, digits = 5) {
  if (value === null || value === undefined) return '';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(3);
  return String(Number(value.toPrecision(digits)));
}

/** Return the first line of a text, at most `most` characters of it. */
export function firstLine(text, most = 120) {
  const line = String(text ?? '').trim().split('\n')[0];
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** Return the first line of a passage and, where the words that were looked for stand further on, what is around them. */
export function excerpt(text, wanted, most) {
  const line = firstLine(text, most);
  const all = text.toLowerCase();
  const [at] = wanted.toLowerCase().split(/\s+/).map((word) => all.indexOf(word)).filter((one) => one >= 0).sort((a, b) => a - b);
  if (at === undefined || at < line.length - 1) return line;
  return `${firstLine(text, most / 2)} … ${text.slice(text.lastIndexOf(' ', at - 15) + 1, at + most / 2).replace(/[\s`]+/g, ' ')}…`;
}

/** Return the first line of a question that names it, without marks of a heading or comment, as the server does; of a cell to run, that of its code. */
export function titleLine(question) {
  const named = question.split('\n').map((line) => line.trim().replace(/^#+\s+/, '')).filter((line) => line && !line.startsWith('```'));
  return (named[0] === 'Run this:' && named[1]) || named[0] || '';
}

/** Return the title of a round as it is shown; a cell without a line of code has the server's words for it. */
export function roundTitle(title) {
  return title === 'Run this:' ? 'Run code' : seen(title) || 'Untitled';
}
