import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { rulesAllowForwarding } from './forward-policy.ts';

const BRIDGE = 'br-0123456789ab';

describe('the FORWARD chain of this machine', () => {
  const allows = (...lines: string[]): boolean => rulesAllowForwarding(`${lines.join('\n')}\n`, BRIDGE);

  test('with the policy ACCEPT lets containers reach each other', () => {
    assert.equal(allows('-P INPUT ACCEPT', '-P FORWARD ACCEPT'), true);
  });

  test('left at DROP by an earlier Docker does not', () => {
    assert.equal(
      allows(
        '-P FORWARD DROP',
        '-N DOCKER-FORWARD',
        '-A FORWARD -j DOCKER-FORWARD',
        '-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
        '-A DOCKER-FORWARD -i docker0 -j ACCEPT',
      ),
      false,
    );
  });

  test('at DROP lets them where a rule covers their bridge', () => {
    assert.equal(
      allows('-P FORWARD DROP', '-A FORWARD -j DOCKER-FORWARD', `-A DOCKER-FORWARD -i ${BRIDGE} -j ACCEPT`),
      true,
    );
    assert.equal(allows('-P FORWARD DROP', '-A FORWARD -i br-+ -o br-+ -j ACCEPT'), true);
    assert.equal(allows('-P FORWARD DROP', '-A FORWARD -s 10.0.0.0/8 -d 10.0.0.0/8 -j ACCEPT'), true);
  });
});
