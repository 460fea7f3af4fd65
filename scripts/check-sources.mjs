// Type-checks and lints the files of a tsconfig.json. Both work on one program: the rules that need types ask the
// checker that has just checked everything, which halves the time of tsc and eslint one after the other.
//   node scripts/check-sources.mjs tsconfig.json [--ignore PATTERN] FILES...
import { parseArgs } from 'node:util';
import { ESLint } from 'eslint';
import ts from 'typescript';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { ignore: { type: 'string', multiple: true, default: [] } },
});
const [configFile = 'tsconfig.json', ...patterns] = positionals;
/** @type {ts.FormatDiagnosticsHost} */
const formatHost = {
  getCanonicalFileName: (name) => name,
  getCurrentDirectory: () => process.cwd(),
  getNewLine: () => '\n',
};

const config = ts.getParsedCommandLineOfConfigFile(
  configFile,
  { incremental: false },
  {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: (diagnostic) => {
      process.stderr.write(ts.formatDiagnostic(diagnostic, formatHost));
      process.exit(1);
    },
  },
);
if (config === undefined) throw new Error(`${configFile} cannot be read`);
const program = ts.createProgram({
  rootNames: config.fileNames,
  options: config.options,
  configFileParsingDiagnostics: config.errors,
});
const diagnostics = ts.sortAndDeduplicateDiagnostics(ts.getPreEmitDiagnostics(program));
process.stdout.write(ts.formatDiagnosticsWithColorAndContext(diagnostics, formatHost));

const eslint = new ESLint({
  overrideConfig: [
    { ignores: values.ignore },
    {
      files: ['**/*.ts', '**/*.tsx'],
      languageOptions: { parserOptions: { projectService: false, programs: [program] } },
    },
  ],
});
const results = await eslint.lintFiles(patterns);
const formatter = await eslint.loadFormatter('stylish');
process.stdout.write(await formatter.format(results));
const failed = results.some(({ errorCount, warningCount }) => errorCount + warningCount > 0);
process.exit(failed || diagnostics.length > 0 ? 1 : 0);
