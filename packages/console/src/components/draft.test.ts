import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conflictsOf, draftOf } from './draft.ts';

const opened = { name: 'one', max: '2' };
const edits = { name: { from: 'one', to: 'mine' } };

test('what was not typed into follows changes elsewhere', () => {
  assert.deepEqual(draftOf({ ...opened, max: '5' }, edits), { name: 'mine', max: '5' });
  assert.deepEqual(conflictsOf({ ...opened, max: '5' }, edits), []);
});

test('what was typed into stays, and is named if it changed elsewhere too', () => {
  const current = { ...opened, name: 'theirs' };
  assert.deepEqual(draftOf(current, edits), { name: 'mine', max: '2' });
  assert.deepEqual(conflictsOf(current, edits), ['name']);
  assert.deepEqual(conflictsOf({ ...opened, name: 'mine' }, edits), []);
});
