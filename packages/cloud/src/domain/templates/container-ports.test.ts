import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { MAX_HTTP_PORTS, portFindings, splitPorts } from './container-ports.ts';

const number = fc.integer({ min: 1, max: 65535 });
const tcp = fc.oneof(number, fc.integer({ min: 70000, max: 79999 })).map((port) => `${port}/tcp`);
const http = number.map((port) => `${port}/http`);
const ports = fc
  .tuple(fc.uniqueArray(http, { maxLength: MAX_HTTP_PORTS }), fc.uniqueArray(tcp, { maxLength: 20 }))
  .map(([some, others]) => [...some, ...others]);

describe('ports', () => {
  test('are the same as a list, as one text, and as anything in between', async () => {
    const space = fc.constantFrom('', ' ', '  ');
    await checkProperty(
      fc.property(ports, space, fc.nat(20), (list, blank, cut) => {
        const joined = (entries: string[]): string => entries.map((entry) => blank + entry + blank).join(',');
        assert.deepEqual(splitPorts(list), list);
        assert.deepEqual(splitPorts(joined(list)), list);
        assert.deepEqual(splitPorts([joined(list.slice(0, cut)), joined(list.slice(cut))]), list);
      }),
    );
    assert.deepEqual(splitPorts(''), []);
    assert.deepEqual(splitPorts([' , ,']), []);
  });

  test('within the rules are accepted', async () => {
    await checkProperty(fc.property(ports, (list) => assert.deepEqual(portFindings(list), [])));
  });

  test('outside the rules are named, each of them', async () => {
    const wrong = fc.oneof(
      fc.constantFrom(
        '0/tcp',
        '65536/tcp',
        '69999/tcp',
        '80000/tcp',
        '22',
        '/tcp',
        '22/udp',
        '22/TCP',
        '-1/tcp',
        '1.5/tcp',
        '22/tcp ',
        '22/tcp/x',
        '１/tcp',
        '22/https',
      ),
      fc.string({ minLength: 1 }).filter((entry) => !/\/(tcp|http)$/.test(entry)),
    );
    await checkProperty(
      fc.property(ports, fc.uniqueArray(wrong, { minLength: 1, maxLength: 4 }), (list, bad) => {
        const findings = portFindings([...list, ...bad]);
        assert.equal(findings.length, bad.length, findings.join('\n'));
        for (const entry of bad)
          assert.ok(
            findings.some((finding) => finding.includes(JSON.stringify(entry.slice(0, 32)))),
            entry,
          );
      }),
    );
  });

  test('over the number of HTTP ports, or listed twice, are refused', () => {
    const many = Array.from({ length: MAX_HTTP_PORTS + 1 }, (_, index) => `${index + 1}/http`);
    assert.deepEqual(portFindings(many), [
      `at most ${MAX_HTTP_PORTS} HTTP ports may be exposed, got ${MAX_HTTP_PORTS + 1}`,
    ]);
    assert.deepEqual(portFindings(['22/tcp', '80/http', '22/tcp']), ['port "22/tcp" is listed twice']);
    assert.deepEqual(portFindings(['80/tcp', '80/http']), []);
    for (const entry of ['0/http', '65536/http', '70000/http'])
      assert.equal(portFindings([entry]).length, 1, entry);
  });

  test('in their tens of thousands are read a few times each, not compared with all others', () => {
    const many = [...Array.from({ length: 80_000 }, (_, index) => `${index}/udp`), '7/udp'];
    let reads = 0;
    const counted = new Proxy(many, {
      get: (target, name) => {
        reads += 1;
        return Reflect.get(target, name) as unknown;
      },
    });
    assert.equal(portFindings(counted).at(-1), 'port "7/udp" is listed twice');
    assert.ok(reads < 10 * many.length, `${reads} reads`);
  });
});
