/**
 * Which folder may import which. Type-only imports count: a type that crosses a layer ties the layers
 * together as much as a value does. `npm run check` runs it over packages/.
 *
 * The direction (ARCHITECTURE.md): app, cli -> http -> auth, resources, queue, compute, metering -> domain,
 * with store and engines as interfaces -> support.
 */

const cloud = '^packages/cloud/src/';
const testCode = '\\.(test|suite)\\.ts$|fixture\\.ts$|\\.sample\\.ts$';

/** @param {string} folders @param {string[]} forbidden @param {string} why */
function layer(folders, forbidden, why) {
  return {
    name: `${folders.replaceAll('|', '-')}-imports`,
    comment: why,
    severity: 'error',
    from: { path: `${cloud}(${folders})/`, pathNot: testCode },
    to: { path: `${cloud}(${forbidden.join('|')})/` },
  };
}

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-import-cycles',
      comment: 'Files that import each other can only be understood together.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'domain-imports-only-support',
      comment:
        "domain/ holds records, limits and pure rules: no files, no network. Node's util and crypto are pure.",
      severity: 'error',
      from: { path: `${cloud}domain/`, pathNot: testCode },
      to: { pathNot: [`${cloud}(domain|support)/`, '^(util|crypto)$'] },
    },
    layer(
      'support',
      [
        'app',
        'cli',
        'http',
        'auth',
        'resources',
        'queue',
        'compute',
        'metering',
        'telemetry',
        'engines',
        'store',
        'domain',
      ],
      'support/ is the bottom layer.',
    ),
    layer(
      'http',
      ['store', 'engines', 'app', 'cli'],
      'http/ calls services; it never touches a store or an engine.',
    ),
    layer('auth', ['http', 'app', 'cli', 'engines'], 'auth/ does not know which interface asks.'),
    layer(
      'resources',
      ['compute', 'http', 'app', 'cli'],
      'Services store the desired state; compute/ makes it so.',
    ),
    layer(
      'queue|compute|metering|telemetry',
      ['http', 'app', 'cli'],
      'Services do not know the interfaces above them.',
    ),
    layer(
      'store|engines',
      ['app', 'cli', 'http', 'auth', 'resources', 'queue', 'compute', 'metering', 'telemetry'],
      'Drivers implement interfaces; they do not know the services that use them.',
    ),
    {
      name: 'drivers-are-named-by-app-only',
      comment: 'Only app/ chooses a driver; everything else asks for an interface.',
      severity: 'error',
      from: {
        path: `${cloud}(auth|cli|http|resources|queue|compute|metering|telemetry|domain|support)/`,
        pathNot: testCode,
      },
      to: { path: `${cloud}(engines/(process|docker|kubernetes)|store/(sqlite|postgres))/` },
    },
    {
      name: 'console-is-a-client',
      comment: 'The console uses the public API; nothing else connects it with the server.',
      severity: 'error',
      from: { path: '^packages/console/' },
      to: { path: '^packages/(cloud|worker)/' },
    },
    {
      name: 'packages-do-not-import-tests',
      comment: 'Helpers that packages/ and tests/ share are in packages/testing.',
      severity: 'error',
      from: { path: '^packages/' },
      to: { path: '^tests/' },
    },
    {
      name: 'testing-package-in-tests-only',
      comment: 'What is shipped does not need the testing package.',
      severity: 'error',
      from: { path: '^packages/', pathNot: ['^packages/testing/', testCode] },
      to: { path: '^packages/testing/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: ['\\.(css|svg|png|py)$', '^packages/[^/]+/dist/'] },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'node', 'default'],
    },
  },
};
