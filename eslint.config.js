import tseslint from 'typescript-eslint';

// Types are checked by tsc; these rules hold what style asks for and tsc cannot see:
// no any, no ignored promise, no empty catch, no stray print.
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
    files: ['**/*.ts'],
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
    // Only the files that wire the house name a driver. Tests run on real ones.
    files: ['packages/cloud/src/{auth,cli,http,resources,queue,compute,metering,domain,support}/**/*.ts'],
    ignores: ['**/*.test.ts', '**/fixture.ts', '**/*fixture.ts', '**/*.sample.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: ['**/engines/{process,docker,kubernetes}/**', '**/store/{sqlite,postgres}/**'],
              message: 'Only cloud.ts and what stands beside it name a driver; ask for an interface.',
            },
          ],
        },
      ],
    },
  },
);
