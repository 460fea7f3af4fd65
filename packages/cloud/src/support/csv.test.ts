import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvText } from './csv.ts';

test('a table is quoted where it must be, and no text is a formula', () => {
  const rows = [
    { name: 'plain', amount: -1.5 },
    { name: 'a "b", c\nd', amount: 0 },
    { name: '=1+1', amount: 2 },
  ];
  assert.equal(
    csvText(['name', 'amount'], rows),
    'name,amount\r\nplain,-1.5\r\n"a ""b"", c\nd",0\r\n\'=1+1,2\r\n',
  );
});
