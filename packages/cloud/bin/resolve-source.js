/**
 * A hook for the resolution of modules. Node looks up the real path of every file that is imported, the package that it
 * belongs to and its kind. Of what the sources import from each other all of that is known: they name the file.
 * That is a sixth of the processor time of a start.
 * @type {import('node:module').ResolveHookSync}
 */
export const resolveSource = (specifier, context, nextResolve) =>
  context.parentURL !== undefined && /^\.{1,2}\/.*\.ts$/.test(specifier)
    ? {
        url: new URL(specifier, context.parentURL).href,
        format: 'module-typescript',
        shortCircuit: true,
      }
    : nextResolve(specifier, context);
