import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { repeats } from '../../../../testing/src/test-tier.ts';
import { ConfigError } from './config-error.ts';
import { configFileTemplate } from './config-file-template.ts';
import type { Setting } from './setting.ts';
import { settingList, type SettingPath } from './settings.ts';
import { loadConfig, type LoadConfigOptions } from './load-config.ts';
import type { OperationLimit } from './operation-limit.setting.ts';

const shortText = fc.string({ maxLength: 30 });
const hexKey = fc.string({
  unit: fc.constantFrom(...'0123456789abcdefABCDEF'),
  minLength: 64,
  maxLength: 64,
});
const idText = fc.string({ unit: fc.constantFrom(...'ABCxyz019-'), minLength: 1, maxLength: 12 });
const priceMap = fc.dictionary(idText, fc.double({ min: 0, max: 10, noNaN: true }), {
  noNullPrototype: true,
});

/**
 * Values of every form that some kind accepts and others refuse. A setting of a new kind needs a form of its
 * own here.
 */
const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  shortText,
  fc.integer({ min: -10, max: 70_000 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.constantFrom(
    'on',
    'off',
    'true',
    'no',
    'auto',
    'none',
    'json',
    'text',
    'info',
    'silent',
    'debug',
    '8484',
    '-1',
    '1.5',
    '',
    '2026-02-30',
  ),
  fc
    .date({ min: new Date('1990-01-01'), max: new Date('2090-01-01'), noInvalidDate: true })
    .map((date) => date.toISOString().slice(0, 10)),
  hexKey,
  fc.uint8Array({ minLength: 31, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('base64')),
  fc.string({ unit: fc.constantFrom(...'aZ09_-$'), minLength: 10, maxLength: 40 }),
  fc.webUrl({ validSchemes: ['http', 'https', 'postgres', 'postgresql', 'ftp'], withQueryParameters: true }),
  fc.array(fc.oneof(shortText, idText), { maxLength: 4 }),
  fc.array(
    fc.record(
      {
        id: idText,
        name: shortText,
        region: fc.constantFrom('EUROPE', 'ASIA', 'MOON'),
        engine: fc.constantFrom('docker', 'process', 'magic'),
      },
      { requiredKeys: ['id'], noNullPrototype: true },
    ),
    { maxLength: 3 },
  ),
  fc.record({ gpu: priceMap, cpu: priceMap, disk: priceMap }, { requiredKeys: [], noNullPrototype: true }),
  fc.record(
    { per10s: fc.integer({ min: 0, max: 5_000 }), concurrent: fc.integer({ min: 0, max: 500 }) },
    { noNullPrototype: true },
  ),
  fc.constantFrom(
    '1000/200',
    '0/1',
    '1/0',
    '1',
    '1/2/3',
    { per10s: 1 },
    { per10s: 1, concurrent: 1, more: 1 },
    { per10s: '1', concurrent: 1 },
    { per10s: 1.5, concurrent: 1 },
  ),
  fc
    .tuple(fc.nat(255), fc.nat(255), fc.integer({ min: 6, max: 26 }))
    .map(([a, b, bits]) => `${a}.${b}.0.0/${bits}`),
  fc.constantFrom(
    'pods=3',
    'queuedBytes=5MB,spendPerMonth=2.5',
    'pods',
    'pods=x',
    { pods: 3 },
    { pds: 3 },
    {},
  ),
  fc.constantFrom('64MB', '1.5 GB', '16MiB', '1 furlong', 250_000_000),
  fc.tuple(fc.nat(5_000), fc.nat(9_000)).map(([first, last]) => `${first}-${last}`),
  fc.constantFrom({ gpu: { A40: -1 } }, { disk: { container: '1' } }, { ram: { A40: 1 } }, { cpu: 3 }),
);

const samples = fc.sample(anyValue, 5_000);
/** Values for each setting, of which there are many. */
const numRuns = repeats({ usually: 10, long: 40 });

function accepted({ type }: Setting): fc.Arbitrary<unknown> {
  const accepts = (value: unknown): boolean => type.fromFile(value) !== undefined;
  assert.ok(samples.some(accepts), 'no form above suits this kind; add one');
  return anyValue.filter(accepts).map((value) => type.fromFile(value));
}

/** A value in the words of a flag or a variable, where it has such words. */
function asText({ type }: Setting, value: unknown): string | undefined {
  const words = isLimit(value)
    ? `${value.per10s}/${value.concurrent}`
    : Array.isArray(value)
      ? value
          .map((item: unknown) => (typeof item === 'string' ? item : (item as { id: string }).id))
          .join(',')
      : typeof value === 'object'
        ? ''
        : String(value);
  const same = words !== '' && JSON.stringify(type.fromText?.(words)) === JSON.stringify(value);
  return same ? words : undefined;
}

function isLimit(value: unknown): value is OperationLimit {
  return typeof value === 'object' && value !== null && 'per10s' in value;
}

function yaml(path: string, value: string): string {
  return path
    .split('.')
    .map((key, depth) => `${depth === 0 ? '' : '\n'}${'  '.repeat(depth)}${key}:`)
    .join('')
    .concat(` ${value}\n`);
}

function file(content: string): LoadConfigOptions {
  return { env: { BERTH_CONFIG: 'berth.yaml' }, readFile: () => Promise.resolve(content) };
}

async function valueAt(path: SettingPath, sources: LoadConfigOptions): Promise<unknown> {
  const { config, warnings } = await loadConfig(sources);
  assert.deepEqual(warnings, []);
  return path.split('.').reduce<unknown>((part, key) => (part as Record<string, unknown>)[key], config);
}

async function refused(sources: LoadConfigOptions): Promise<string> {
  const error = await loadConfig(sources).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ConfigError, 'this should be refused');
  return error.message;
}

describe('every setting', () => {
  for (const { path, setting, variable } of settingList) {
    test(`${path} means the same from every source`, async () => {
      await fc.assert(
        fc.asyncProperty(accepted(setting), async (value) => {
          assert.deepEqual(await valueAt(path, file(yaml(path, setting.type.toYaml(value)))), value);
          const words = asText(setting, value);
          if (words === undefined || variable === undefined) return;
          assert.deepEqual(await valueAt(path, { env: { [variable]: words } }), value);
          if (setting.flag) assert.deepEqual(await valueAt(path, { argv: [`--${path}=${words}`] }), value);
        }),
        { numRuns },
      );
    });

    test(`${path} refuses any other value with a message that says all`, async () => {
      await fc.assert(
        fc.asyncProperty(
          anyValue.filter((value) => setting.type.fromFile(value) === undefined),
          async (value) => {
            const sources: [string, LoadConfigOptions][] = [
              ['berth.yaml', file(yaml(path, JSON.stringify(value)))],
            ];
            if (typeof value === 'string' && value !== '' && variable !== undefined)
              sources.push([variable, { env: { [variable]: value } }]);
            if (typeof value === 'string' && setting.flag)
              sources.push([`--${path}`, { argv: [`--${path}=${value}`] }]);
            for (const [origin, source] of sources) {
              const message = await refused(source);
              for (const part of [path, origin, setting.type.allowed])
                assert.ok(message.includes(part), `${message} should name ${part}`);
              const given = JSON.stringify(value);
              if (!setting.secret)
                assert.ok(message.includes(given.slice(0, 60)), `${message} should show ${given}`);
              else if (given.length > 8)
                assert.ok(!message.includes(given.slice(1, -1)), 'a secret is shown');
            }
          },
        ),
        { numRuns },
      );
    });
  }

  test('has a path that is not also a section, and a variable of its own', () => {
    const variables = settingList.flatMap(({ variable }) => variable ?? []);
    assert.equal(new Set(variables).size, variables.length);
    for (const { path } of settingList)
      assert.ok(!settingList.some((other) => other.path.startsWith(`${path}.`)), path);
  });
});

describe('loadConfig', () => {
  test('needs nothing', async () => {
    const { config, warnings } = await loadConfig({});
    assert.deepEqual(warnings, []);
    assert.equal(config.host, '127.0.0.1');
    assert.equal(config.port, 8484);
    assert.equal(config.webhooks.allowPrivate, false);
    assert.deepEqual(config.dataCenters, [{ id: 'LOCAL-1' }]);
  });

  test('takes a flag over a variable over the file over the default', async () => {
    const env = { BERTH_CONFIG: 'berth.yaml', BERTH_PORT: '2', BERTH_HOST: 'two' };
    const readFile = () => Promise.resolve('port: 3\nhost: three\ndata: three\n');
    const { config } = await loadConfig({ argv: ['--port', '1'], env, readFile });
    assert.deepEqual([config.port, config.host, config.data, config.databasePool], [1, 'two', 'three', 10]);
  });

  test('takes the file of --config over that of BERTH_CONFIG', async () => {
    const readFile = (path: string) => Promise.resolve(path === 'flag.yaml' ? 'port: 1' : 'port: 2');
    assert.equal(
      (await loadConfig({ argv: ['--config', 'flag.yaml'], env: { BERTH_CONFIG: 'env.yaml' }, readFile }))
        .config.port,
      1,
    );
  });

  test('reads what "berth config" prints as the defaults', async () => {
    assert.deepEqual((await loadConfig(file(configFileTemplate()))).config, (await loadConfig({})).config);
  });

  test('reads the examples', async () => {
    for (const { example } of settingList.map(({ setting }) => setting))
      if (example !== undefined) await loadConfig(file(example));
  });

  test('lets a variable be empty and a section be bare', async () => {
    const { config } = await loadConfig({
      ...file('log:\nport:\n'),
      env: { BERTH_CONFIG: 'berth.yaml', BERTH_HOST: '' },
    });
    assert.deepEqual([config.log.level, config.port, config.host], ['info', 8484, '127.0.0.1']);
  });

  test('lists every problem at once', async () => {
    const message = await refused({
      argv: ['--port', 'x', '--hots', 'y', 'z'],
      env: { BERTH_LOG_LEVEL: 'loud' },
    });
    assert.deepEqual(message.split('\n'), [
      'unknown option --hots; did you mean --host?',
      'unexpected argument "y"',
      'unexpected argument "z"',
      'port from --port is "x"; allowed: a whole number from 0 to 65535',
      'log.level from BERTH_LOG_LEVEL is "loud"; allowed: trace, debug, info, warn, error, fatal, silent',
    ]);
  });

  test('names the nearest setting for an unknown one of the file', async () => {
    assert.match(await refused(file('prot: 1')), /^unknown setting prot in berth.yaml; did you mean port\?$/);
    assert.match(await refused(file('log: {levle: info}')), /log.levle .* did you mean log.level\?/);
    assert.match(await refused(file('allowPrivate: true')), /did you mean webhooks.allowPrivate\?/);
    assert.match(await refused(file('somethingEntirelyElse: 1')), /"berth config" shows all/);
    assert.match(await refused(file('__proto__: 1')), /unknown setting __proto__/);
  });

  test('says what is wrong with a file', async () => {
    assert.match(await refused(file('- a\n- b')), /must hold settings/);
    assert.match(
      await refused(file('log: info')),
      /^log in berth.yaml is a section; allowed: level, format below it$/,
    );
    assert.match(await refused(file('log: {level: info}\nlog.level: warn')), /stands twice/);
    assert.match(
      await refused({ argv: ['--config', '/nowhere/berth.yaml'] }),
      /\/nowhere\/berth.yaml cannot be read: ENOENT/,
    );
    const broken = await refused(file('rootKey: "my-very-secret-key\nport: 1'));
    assert.match(broken, /^berth.yaml is not YAML: /);
    assert.ok(!broken.includes('secret-key'));
  });

  test('warns of unknown variables, and only of those', async () => {
    const env = {
      BERTH_PROT: '1',
      BERTH_URL: 'x',
      BERTH_API_KEY: 'x',
      BERTH_TEST_ANY: 'x',
      BERTH_PORT_8080: 'x',
      BERTH_FOO: 'x',
      OTHER: 'x',
    };
    assert.deepEqual((await loadConfig({ env })).warnings, [
      'BERTH_FOO is not a variable of Berth and is ignored',
      'BERTH_PROT is not a variable of Berth and is ignored; did you mean BERTH_PORT?',
    ]);
  });

  test('runs beside a Kubernetes service that is called berth', async () => {
    const { config, warnings } = await loadConfig({
      env: {
        BERTH_PORT: 'tcp://10.0.0.7:80',
        BERTH_SERVICE_HOST: '10.0.0.7',
        BERTH_SERVICE_PORT: '80',
        BERTH_PORT_80_TCP: 'tcp://10.0.0.7:80',
      },
    });
    assert.equal(config.port, 8484);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? '', /BERTH_PORT .* Kubernetes/);
  });

  test('gives a master key in one form, however it is written', async () => {
    const bytes = Buffer.alloc(32, 0xab);
    for (const text of [
      bytes.toString('hex').toUpperCase(),
      bytes.toString('base64'),
      bytes.toString('base64url'),
    ]) {
      assert.equal(
        (await loadConfig({ env: { BERTH_MASTER_KEY: text } })).config.masterKey,
        bytes.toString('hex'),
      );
    }
  });
});
