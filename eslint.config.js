import tseslint from 'typescript-eslint';

// Types are checked by tsc; these rules hold what style asks for and tsc cannot see:
// no any, no ignored promise, no empty catch, no stray print. Layers and import cycles are checked by
// dependency-cruiser (.dependency-cruiser.cjs).
export default tseslint.config(
  {
    ignores: [
      '**/node_modules/**',
      '.berth/**',
      'clients/.installed/**',
      '**/dist/**',
      'packages/cloud/examples/**',
    ],
  },
  tseslint.configs.base,
  {
    files: ['**/*.ts', '**/*.tsx'],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            {
              from: 'package',
              name: ['test', 'it', 'describe', 'before', 'after', 'beforeEach', 'afterEach', 'suite'],
              package: 'node:test',
            },
          ],
        },
      ],
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/no-unnecessary-type-assertion': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      'no-empty': 'error',
      'no-console': 'error',
      'no-debugger': 'error',
      eqeqeq: ['error', 'always'],
      'prefer-const': 'error',
    },
  },
  {
    files: ['packages/cloud/src/**/*.ts', 'packages/worker/src/**/*.ts'],
    ignores: ['**/*.test.ts', '**/*.suite.ts', '**/*.fixture.ts', '**/fake-*.ts', '**/*-test-*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          name: 'node:http',
          allowTypeImports: true,
          message:
            'Import it from node-http.ts: this import loads all of fetch, 14 MB and 30 ms of every start.',
        },
        {
          name: 'prom-client',
          allowTypeImports: true,
          message: 'Import it from prometheus-client.ts, which loads only what every start needs.',
        },
      ],
    },
  },
);
