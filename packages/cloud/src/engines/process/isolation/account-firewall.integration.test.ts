import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { firewallProblem } from '../../iptables.ts';
import { accountFirewallRules } from './account-firewall.ts';

const FIREWALL = new URL('account-firewall.ts', import.meta.url).href;

/**
 * In a network namespace of its own, with a metadata service and the real firewall. A socket belongs to the
 * user that the process has when it is made.
 */
const PROBE = `
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { mkdirSync, rmSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
const { AccountFirewall } = await import(${JSON.stringify(FIREWALL)});
const [ROOT, ONE, OTHER] = [0, 1900000001, 1900000002];
const as = async (uid, work) => { process.seteuid(uid); try { return await work(); } finally { process.seteuid(0); } };
const listen = (uid, host, port) => as(uid, () => once(createServer((s) => s.end('hello')).listen(port, host), 'listening'));
const reach = (uid, host, port) => as(uid, () => new Promise((resolve) => {
  const socket = connect({ host, port, timeout: 300 });
  socket.once('data', () => resolve('reached')).once('end', () => resolve('closed'));
  socket.once('error', () => resolve('refused')).once('timeout', () => { socket.destroy(); resolve('refused'); });
}));
for (const [uid, port] of [[ROOT, 7000], [ROOT, 20500], [ROOT, 20600], [ONE, 7001], [OTHER, 7002]]) {
  await listen(uid, '127.0.0.1', port);
  await listen(uid, '::1', port);
}
await listen(ROOT, '169.254.169.254', 8080);
const datagrams = [];
const udp = createSocket('udp4').on('message', (text) => datagrams.push(String(text)));
await new Promise((resolve) => udp.bind(7001, '127.0.0.1', resolve));
const results = {};
const tryAll = async (when) => {
  for (const [name, uid] of Object.entries({ root: ROOT, one: ONE, other: OTHER })) {
    for (const host of ['127.0.0.1', '::1'])
      for (const [to, port] of Object.entries({ root: 7000, 'a pod of root': 20500, Berth: 20600, one: 7001, other: 7002 }))
        results[when + ': ' + name + ' to ' + to + ' at ' + host] = await reach(uid, host, port);
    results[when + ': ' + name + ' to the metadata service'] = await reach(uid, '169.254.169.254', 8080);
    await as(uid, () => new Promise((resolve) => {
      const socket = createSocket('udp4');
      socket.send(when + ' ' + name, 7001, '127.0.0.1', () => { socket.close(); resolve(); });
    }));
  }
};
await tryAll('open');
const data = process.argv[1];
const gone = new AccountFirewall({ data: data + '/gone', range: { first: 1900000000, last: 1900065535 } });
mkdirSync(data + '/gone', { recursive: true });
await gone.add(ONE, () => []);
rmSync(data + '/gone', { recursive: true });
const firewall = new AccountFirewall({ data, ownPorts: [20600], range: { first: 1900000000, last: 1900065535 } });
await firewall.add(ONE, () => [OTHER]);
await tryAll('closed');
const chains = () => execFileSync('iptables', ['-S'], { encoding: 'utf8' }).match(/^-N BERTH-OUT/gm)?.length ?? 0;
const before = chains();
await firewall.remove();
await new Promise((resolve) => setImmediate(resolve));
console.log(JSON.stringify({ results, datagrams, chains: [before, chains()] }));
process.exit(0);
`;

const problem = (await firewallProblem()) ?? namespaceProblem();

function namespaceProblem(): string | undefined {
  const { status } = spawnSync('unshare', ['--net', 'ip', 'link', 'set', 'lo', 'up']);
  return status === 0 ? undefined : 'this machine has no network namespaces, or lacks ip(8)';
}

describe('the firewall for accounts', () => {
  test('closes the ports of other accounts and the metadata service, and nothing else', {
    skip: problem ?? false,
  }, () => {
    const { stdout, stderr } = spawnSync(
      'unshare',
      [
        ...['--net', '--mount', 'sh', '-c'],
        'ip link set lo up && ip addr add 169.254.169.254/32 dev lo && mount -t tmpfs tmpfs /mnt && exec "$0" "$@"',
        ...[process.execPath, '--input-type=module', '-e', PROBE, '/mnt'],
      ],
      { encoding: 'utf8' },
    );
    assert.notEqual(stdout, '', stderr);
    const { results, datagrams, chains } = JSON.parse(stdout) as {
      results: Record<string, string>;
      datagrams: string[];
      chains: [number, number];
    };
    const reached = Object.entries(results).filter(([, result]) => result === 'reached');
    const closed = Object.keys(results).filter((name) => results[name] !== 'reached');
    assert.deepEqual(closed.sort(), [
      'closed: one to a pod of root at 127.0.0.1',
      'closed: one to a pod of root at ::1',
      'closed: one to other at 127.0.0.1',
      'closed: one to other at ::1',
      'closed: one to the metadata service',
      'closed: other to a pod of root at 127.0.0.1',
      'closed: other to a pod of root at ::1',
      'closed: other to one at 127.0.0.1',
      'closed: other to one at ::1',
      'closed: other to the metadata service',
    ]);
    assert.equal(reached.length, 2 * 33 - closed.length);
    assert.deepEqual(datagrams.sort(), ['closed root', 'open one', 'open other', 'open root']);
    // The rules of a server whose data folder is gone are removed with the first of another one.
    assert.deepEqual(chains, [1, 0]);
  });

  test('has two rules for each account', () => {
    const rules = (uids: number[]): number =>
      accountFirewallRules({ chain: 'X', version: 4, uids }).split('\n').length;
    assert.equal(rules([1, 2, 3]) - rules([]), 6);
  });
});
