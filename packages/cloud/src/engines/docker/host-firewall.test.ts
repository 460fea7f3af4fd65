import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { bridgeName, bridgePrefix, firewallRules, HostFirewall } from './host-firewall.ts';
import { accountNetworkName, parseRoutes, subnetsOf } from './docker-networks.ts';

const STATE = {
  bridges: ['bt1234aaaaaaaa', 'bt1234bbbbbbbb'],
  allowed: [{ address: '172.17.0.1', port: 8484 }],
  otherSubnets: ['172.17.0.0/16'],
};

/** Keeps chains as iptables would, as far as the firewall uses them. */
function fakeIptables({ hasDockerChain = true, fails = false } = {}) {
  const jumps: string[] = [];
  const chains = new Set<string>();
  let restored = 0;
  const commands = {
    run: async (action = '', ...rest: readonly string[]): Promise<string> => {
      if (fails) throw new Error('iptables: Permission denied');
      const rule = rest.filter((word) => word !== '1').join(' ');
      if (action === '-S' && rest[0] === 'DOCKER-USER' && !hasDockerChain) throw new Error('no chain');
      if (action === '-C' && !jumps.includes(rule)) throw new Error('no rule');
      if (action === '-I') jumps.unshift(rule);
      if (action === '-D') {
        if (!jumps.includes(rule)) throw new Error('no rule');
        jumps.splice(jumps.indexOf(rule), 1);
      }
      if (action === '-X') chains.delete(rest[0] ?? '');
      return '';
    },
    restore: async (rules: string): Promise<void> => {
      restored += 1;
      for (const [, chain = ''] of rules.matchAll(/^:(\S+)/gm)) chains.add(chain);
    },
  };
  return { commands, jumps, chains, restored: () => restored };
}

describe('the firewall of a machine with containers', { skip: process.getuid?.() !== 0 }, () => {
  test('jumps to its chains once, and removes all of it with the last network', async () => {
    const { commands, jumps, chains, restored } = fakeIptables();
    const firewall = new HostFirewall('here', undefined, commands);
    await firewall.apply(async () => STATE);
    await firewall.apply(async () => STATE);
    assert.equal(restored(), 1);
    assert.deepEqual(jumps.map((rule) => rule.split(' ')[0]).sort(), ['DOCKER-USER', 'DOCKER-USER', 'INPUT']);
    assert.equal(chains.size, 2);
    await firewall.apply(async () => ({ ...STATE, bridges: [] }));
    assert.deepEqual([jumps, [...chains]], [[], []]);
  });

  test("uses the machine's own chain where Docker manages none", async () => {
    const { commands, jumps } = fakeIptables({ hasDockerChain: false });
    await new HostFirewall('here', undefined, commands).apply(async () => STATE);
    assert.deepEqual(jumps.map((rule) => rule.split(' ')[0]).sort(), ['FORWARD', 'FORWARD', 'INPUT']);
  });

  test('is left alone, with a warning, where it may not be managed', async () => {
    const { commands, restored } = fakeIptables({ fails: true });
    const warnings: unknown[] = [];
    const log = { warn: (...said: unknown[]) => warnings.push(said) };
    const firewall = new HostFirewall('here', log as never, commands);
    await firewall.apply(async () => STATE);
    await firewall.apply(async () => STATE);
    assert.deepEqual([restored(), warnings.length], [0, 1]);
    assert.match(String(await firewall.problem()), /Permission denied/);
  });
});

describe('the rules of an installation', () => {
  const rules = firewallRules({ installation: 'here', ...STATE }).split('\n');
  const inputs = rules.filter((rule) => rule.startsWith('-A BERTH-IN'));
  const forwards = rules.filter((rule) => rule.startsWith('-A BERTH-FWD'));

  test('let containers reach the worker listener and nothing else of the machine', () => {
    assert.deepEqual(
      inputs.map((rule) => rule.replace(/^-A \S+ /, '').replace(/-m comment --comment "[^"]*" /, '')),
      [
        '-m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT',
        '-d 172.17.0.1/32 -p tcp -m tcp --dport 8484 -j ACCEPT',
        '-j REJECT',
      ],
    );
  });

  test('accept what stays in one network before anything else, and keep the rest apart, in this order', () => {
    const any = `${bridgePrefix('here')}+`;
    assert.deepEqual(
      forwards.map((rule) => rule.replace(/^-A \S+ /, '').replace(/-m comment --comment "[^"]*" /, '')),
      [
        '-i bt1234aaaaaaaa -o bt1234aaaaaaaa -j ACCEPT',
        '-i bt1234bbbbbbbb -o bt1234bbbbbbbb -j ACCEPT',
        '-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN',
        `-i ${any} -o ${any} -j REJECT`,
        `-i ${any} -d 169.254.0.0/16 -j REJECT`,
        `-i ${any} -d 172.17.0.0/16 -j REJECT`,
        `-i ${any} -o docker0 -j REJECT`,
        `-i ${any} -o br-+ -j REJECT`,
        `-o ${any} -j DROP`,
      ],
    );
  });

  test('say whose they are', () => {
    assert.ok([...inputs, ...forwards].every((rule) => rule.includes('berth here: ')));
  });
});

test('names fit the system, and differ between installations and accounts', () => {
  const names = ['a', 'b'].flatMap((installation) =>
    ['x', 'y'].map((account) => bridgeName(installation, accountNetworkName(installation, account))),
  );
  assert.equal(new Set(names).size, 4);
  // A daemon knows networks by their names.
  assert.notEqual(accountNetworkName('a', 'x'), accountNetworkName('b', 'x'));
  assert.ok(names.every((name) => name.length <= 15));
  assert.ok(names[0]?.startsWith(bridgePrefix('a')));
});

test('a range is divided into networks of 1,024 addresses', () => {
  assert.deepEqual(
    [...subnetsOf('10.80.0.0/20')],
    ['10.80.0.0/22', '10.80.4.0/22', '10.80.8.0/22', '10.80.12.0/22'],
  );
  assert.equal([...subnetsOf('10.80.0.0/12')].length, 1024);
});

test('the routes of the machine are read as subnets', () => {
  const table = [
    'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT',
    'eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0',
    'bt0876689c47fd\t0000500A\t00000000\t0001\t0\t0\t0\t00FCFFFF\t0\t0\t0',
    '',
  ].join('\n');
  assert.deepEqual(parseRoutes(table), ['10.80.0.0/22']);
});
