/** Preferences and drafts of this browser. */

const PREFIX = 'taskweaver.';
const MOST_DRAFT_CHARS = 100_000;

/** Return a preference. */
export function pref(name, fallback) {
  try {
    const text = localStorage.getItem(PREFIX + name);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

/** Keep a preference. */
export function keepPref(name, value) {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // The browser has no room: the preference lives until the tab is closed.
  }
}

const drafts = new Map();

/** Return the draft for a branch. */
export function draft(session, branch) {
  const key = `draft.${session}.${branch}`;
  if (!drafts.has(key)) drafts.set(key, pref(key, ''));
  return drafts.get(key);
}

/** Keep the draft for a branch; an empty one is forgotten. */
export function keepDraft(session, branch, text) {
  const key = `draft.${session}.${branch}`;
  drafts.set(key, text);
  if (text) keepPref(key, text.slice(0, MOST_DRAFT_CHARS));
  else localStorage.removeItem(PREFIX + key);
}

/** Apply the chosen theme: `light`, `dark`, or that of the system. */
export function applyTheme(theme = pref('theme', 'system')) {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
