import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commands } from './commands.ts';
import { commandHelp, programHelp } from './help.ts';
import { formatTable } from './table.ts';

const WIDTH = 80;

test('no line of any help is wrapped by a terminal of 80 columns', async () => {
  const all = await Promise.all(Object.values(commands).map((load) => load()));
  for (const text of [programHelp(all), ...all.map(commandHelp)])
    for (const line of text.split('\n')) assert.ok(line.length <= WIDTH, `${line.length}: ${line}`);
});

test('no line of a table is wrapped: cells are cut, and the last columns left out', () => {
  const titles = [
    'MACHINE',
    'NAME',
    'STATUS',
    'IMAGE',
    'HARDWARE',
    'CPU',
    'MEMORY',
    'PORTS',
    'SSH',
    '$/HOUR',
  ];
  const row = titles.map((title) => `a value for ${title} that is long`);
  const lines = formatTable(titles, [row], { width: WIDTH, colours: false });
  for (const line of lines) assert.ok(line.length <= WIDTH, line);
  assert.match(lines[0] ?? '', /^MACHINE +NAME +STATUS +IMAGE +HARDWARE +CPU +MEMORY +PORTS$/);
  // An id is to be copied.
  const [, job] = formatTable(titles, [['00067a94-1a14-8089-9f6b-a33a5446758e-u1', ...row.slice(1)]], {
    width: WIDTH,
    colours: false,
  });
  assert.match(job ?? '', /^00067a94-1a14-8089-9f6b-a33a5446758e-u1 {2}a value/);
  assert.ok((job ?? '').length <= WIDTH, job);
  const gpu = 'NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb';
  const gpus = formatTable(['ID', 'KIND', 'AVAILABILITY'], [[gpu, 'virtual', 'HIGH']], {
    width: WIDTH,
    colours: false,
  });
  assert.equal(gpus[1], `${gpu}  virtual  HIGH`);
  // What is not shown on a terminal is all there where nothing has a width.
  assert.match(formatTable(titles, [row], { colours: false })[1] ?? '', /a value for \$\/HOUR that is long$/);
});
