import type { EngineCapabilities } from '../placement/engine-capacity.ts';

const MAX_PORT = 65_535;
/** What is taken from a number that no port can have. */
const SYMMETRIC_PORT_OFFSET = 30_000;

/**
 * The number under which an engine knows a declared port. One from 70000 on asks for the same
 * number inside and outside, whichever it is, and is given to the pod in RUNPOD_TCP_PORT_<declared>.
 * An instance that shares the machine's ports gets one there in any case; in a container it has to be
 * a number that a port can have.
 */
export function containerPort(
  declared: number,
  { capabilities }: { capabilities: EngineCapabilities },
): number {
  return declared > MAX_PORT && capabilities.images === 'containers'
    ? declared - SYMMETRIC_PORT_OFFSET
    : declared;
}

/** The environment variables for these. */
export function symmetricPortVariables(
  ports: readonly number[],
  engine: { capabilities: EngineCapabilities },
): Record<string, string> {
  return Object.fromEntries(
    ports
      .filter((port) => containerPort(port, engine) !== port)
      .map((port) => [`RUNPOD_TCP_PORT_${port}`, String(containerPort(port, engine))]),
  );
}
