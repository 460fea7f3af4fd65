import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chooseInterpreter, findInterpreters } from './python-interpreters.ts';

const python = (version: string) => ({ path: `/python${version}`, version, platform: 'linux-x86_64' });
const found = [python('3.11.7'), python('3.1.5'), python('3.12.1'), python('3.12.4')];
const wanted = (version: string) => ({ wanted: version, source: '.python-version' });

describe('the Python of an environment', () => {
  test('is the first one, or the first of the version that is asked for', () => {
    assert.equal(chooseInterpreter(null, found).version, '3.11.7');
    assert.equal(chooseInterpreter(wanted('3.12'), found).version, '3.12.1');
    assert.equal(chooseInterpreter(wanted('3.12.4'), found).version, '3.12.4');
    assert.equal(chooseInterpreter(wanted('3.1'), found).version, '3.1.5');
  });

  test('that is not installed is refused with those that are', () => {
    assert.throws(
      () => chooseInterpreter(wanted('3.13'), found),
      /^BerthError: Python 3\.13, which \.python-version asks for, is not installed on this machine; installed: 3\.11\.7, 3\.1\.5, 3\.12\.1, 3\.12\.4$/,
    );
    assert.throws(() => chooseInterpreter(null, []), /Python is not installed on this machine/);
  });

  test('is not found where there is none', async () => {
    assert.deepEqual(await findInterpreters({ PATH: '/nowhere', PYENV_ROOT: '/nowhere' }), []);
  });
});
