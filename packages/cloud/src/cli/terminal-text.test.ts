import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fitToTerminal } from './terminal-text.ts';

const terminal = { isTTY: true, columns: 40, write: () => undefined };

test('a long line is broken between words, and indented under where it begins', () =>
  assert.equal(
    fitToTerminal('berth: there is no folder foo, and an image has a tag\n2.3 s  is COMPLETED', terminal),
    'berth: there is no folder foo, and an\n       image has a tag\n2.3 s  is COMPLETED',
  ));

test('a command and a long word stay whole', () => {
  assert.equal(
    fitToTerminal('there is no context "x"; see "berth context ls" for all', terminal),
    'there is no context "x"; see\n"berth context ls" for all',
  );
  const word = 'x'.repeat(50);
  assert.equal(fitToTerminal(`see ${word}`, terminal), `see\n${word}`);
});

test('what is piped is left as it is', () => {
  const line = 'word '.repeat(40);
  assert.equal(fitToTerminal(line, { ...terminal, isTTY: false }), line);
});
