import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { ServerProcess } from '../../packages/testing/src/server-process.ts';
import { documentedVariables } from './documentation-code.ts';
import { npmFile } from './npm-client.mjs';

interface Reply {
  id: number;
  result?: {
    tools?: { name: string }[];
    content?: { text: string }[];
    isError?: boolean;
    serverInfo?: { name: string; version: string };
  };
  error?: { message: string };
}

/** What a tool answered: its text, read as JSON. */
export interface ToolResult<T> {
  failed: boolean;
  text: string;
  body: T;
}

/** The MCP server over stdio, as an assistant starts it. */
export interface McpServerProcess {
  version: string;
  tools: string[];
  /** The names of the tools that were used by now. */
  usedTools: Set<string>;
  call<T = Record<string, unknown>>(tool: string, args?: Record<string, unknown>): Promise<ToolResult<T>>;
  /** The same, and it must succeed. */
  ask<T = Record<string, unknown>>(tool: string, args?: Record<string, unknown>): Promise<T>;
  stop(): void;
}

/** The variables of its page: those of version 4, and the two that version 3 reads. */
export function mcpEnvironment(server: Pick<ServerProcess, 'url' | 'key'>): Record<string, string> {
  return {
    ...documentedVariables('mcp-server.md', 0, server),
    ...documentedVariables('mcp-server.md', 1, server),
  };
}

export async function startMcpServer(
  installed: string,
  env: Record<string, string>,
): Promise<McpServerProcess> {
  const child = spawn(process.execPath, [npmFile(installed, '@runpod/mcp-server/dist/stdio.mjs')], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
  });
  const waiting = new Map<number, (reply: Reply) => void>();
  createInterface(child.stdout).on('line', (line) => {
    const reply = JSON.parse(line) as Reply;
    waiting.get(reply.id)?.(reply);
    waiting.delete(reply.id);
  });
  let last = 0;
  const send = (message: Record<string, unknown>): void =>
    void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const request = (method: string, params: Record<string, unknown> = {}): Promise<Reply> =>
    new Promise((resolve) => {
      waiting.set((last += 1), resolve);
      send({ id: last, method, params });
    });

  const { result: hello } = await request('initialize', {
    protocolVersion: '2025-03-26',
    capabilities: {},
    clientInfo: { name: 'berth-tests', version: '1' },
  });
  send({ method: 'notifications/initialized' });
  const listed = await request('tools/list');
  const used = new Set<string>();
  const call: McpServerProcess['call'] = async (tool, args = {}) => {
    used.add(tool);
    const { result, error } = await request('tools/call', { name: tool, arguments: args });
    const text = error?.message ?? result?.content?.map((part) => part.text).join('') ?? '';
    return { failed: error !== undefined || result?.isError === true, text, body: parsed(text) as never };
  };
  return {
    version: hello?.serverInfo?.version ?? '',
    tools: (listed.result?.tools ?? []).map(({ name }) => name),
    usedTools: used,
    call,
    ask: async (tool, args) => {
      const { failed, text, body } = await call(tool, args);
      assert.ok(!failed, `${tool}: ${text}`);
      return body as never;
    },
    stop: () => void child.kill(),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
