import { UPLOAD_SOURCE_HEADER } from '../../domain/s3-names.ts';
import { child, parseXml, childText } from '../../support/xml-parser.ts';
import type { XmlElement } from '../../support/xml-parser.ts';
import type { ApiClient, SendOptions } from '../api-client.ts';
import { CliError } from '../cli.errors.ts';
import { escapeControlCharacters } from '../output.ts';

/** Long enough for a large part over a slow connection. */
const PART_TIMEOUT_MS = 600_000;

export interface RemoteFile {
  key: string;
  size: number;
  modifiedAt: string;
  etag: string;
}

export interface UploadedPart {
  number: number;
  etag: string;
  size: number;
}

/** An error response of the S3 interface. */
export class BucketError extends CliError {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The files of one network volume, over the server's S3 interface, with the command's API key. */
export class VolumeBucket {
  readonly #client: ApiClient;
  readonly #id: string;

  constructor(client: ApiClient, { id }: { id: string }) {
    this.#client = client;
    this.#id = id;
  }

  /** Undefined if there is no such file. A folder's key ends in a slash. */
  async head(key: string): Promise<RemoteFile | undefined> {
    const response = await this.#send('HEAD', key, {}, undefined);
    if (response.status === 404) return undefined;
    if (!response.ok) throw await bucketErrorFrom(response);
    return {
      key,
      size: Number(response.headers.get('content-length') ?? 0),
      modifiedAt: response.headers.get('last-modified') ?? '',
      etag: unquoteEtag(response.headers.get('etag')),
    };
  }

  /** Everything below a prefix. With `shallow`, a folder is one entry whose name ends in a slash. */
  async *list(prefix: string, shallow = false): AsyncGenerator<RemoteFile | { folder: string }> {
    let token: string | undefined;
    do {
      const query: Record<string, string> = {
        'list-type': '2',
        prefix,
        'encoding-type': 'url',
        ...(shallow && { delimiter: '/' }),
        ...(token !== undefined && { 'continuation-token': token }),
      };
      const root = await this.#document('GET', '', query);
      for (const { name, children } of root.children) {
        const entry: XmlElement = { name, text: '', children };
        if (name === 'CommonPrefixes') yield { folder: decodeURIComponent(childText(entry, 'Prefix') ?? '') };
        if (name === 'Contents')
          yield {
            key: decodeURIComponent(childText(entry, 'Key') ?? ''),
            size: Number(childText(entry, 'Size')),
            modifiedAt: childText(entry, 'LastModified') ?? '',
            etag: unquoteEtag(childText(entry, 'ETag')),
          };
      }
      token = child(root, 'NextContinuationToken')?.text;
    } while (token !== undefined);
  }

  /** The content from an offset on, if the file still has this ETag. */
  async get(
    { key, etag }: Pick<RemoteFile, 'key' | 'etag'>,
    from: number,
  ): Promise<ReadableStream<Uint8Array>> {
    const response = await this.#send('GET', key, {}, undefined, {
      headers: { 'if-match': `"${etag}"`, ...(from > 0 && { range: `bytes=${from}-` }) },
    });
    if (!response.ok) throw await bucketErrorFrom(response);
    if (response.body === null || (from > 0 && response.status !== 206))
      throw new CliError(`${this.#client.url} does not answer as Berth does; check BERTH_URL`);
    return response.body as ReadableStream<Uint8Array>;
  }

  async put(key: string, content: Uint8Array): Promise<void> {
    const response = await this.#send('PUT', key, {}, content, { timeoutMs: PART_TIMEOUT_MS });
    if (!response.ok) throw await bucketErrorFrom(response);
  }

  async delete(key: string): Promise<void> {
    const response = await this.#send('DELETE', key, {}, undefined);
    if (!response.ok) throw await bucketErrorFrom(response);
  }

  /** The latest unfinished upload of this key from the same source. */
  async findUpload(key: string, source: string): Promise<string | undefined> {
    const root = await this.#document('GET', '', { uploads: '', prefix: key, 'encoding-type': 'url' });
    const uploads = root.children
      .filter(({ name }) => name === 'Upload')
      .filter(
        (upload) =>
          decodeURIComponent(childText(upload, 'Key') ?? '') === key &&
          childText(upload, 'Source') === source,
      );
    return childText(uploads.at(-1), 'UploadId');
  }

  async createUpload(key: string, source: string): Promise<string> {
    const id = childText(
      await this.#document('POST', key, { uploads: '' }, undefined, { [UPLOAD_SOURCE_HEADER]: source }),
      'UploadId',
    );
    if (id === undefined)
      throw new CliError(`${this.#client.url} does not answer as Berth does; check BERTH_URL`);
    return id;
  }

  async listParts(key: string, uploadId: string): Promise<UploadedPart[]> {
    const parts: UploadedPart[] = [];
    let marker: string | undefined;
    do {
      const root = await this.#document('GET', key, {
        uploadId,
        ...(marker !== undefined && { 'part-number-marker': marker }),
      });
      for (const part of root.children.filter(({ name }) => name === 'Part'))
        parts.push({
          number: Number(childText(part, 'PartNumber')),
          etag: unquoteEtag(childText(part, 'ETag')),
          size: Number(childText(part, 'Size')),
        });
      marker = childText(root, 'NextPartNumberMarker');
    } while (marker !== undefined);
    return parts;
  }

  async putPart(key: string, uploadId: string, number: number, content: Uint8Array): Promise<string> {
    const response = await this.#send('PUT', key, { uploadId, partNumber: String(number) }, content, {
      timeoutMs: PART_TIMEOUT_MS,
    });
    if (!response.ok) throw await bucketErrorFrom(response);
    await response.arrayBuffer();
    return unquoteEtag(response.headers.get('etag'));
  }

  async completeUpload(
    key: string,
    uploadId: string,
    parts: readonly Pick<UploadedPart, 'number' | 'etag'>[],
  ): Promise<void> {
    const body = `<CompleteMultipartUpload>${parts.map(({ number, etag }) => `<Part><PartNumber>${number}</PartNumber><ETag>${etag}</ETag></Part>`).join('')}</CompleteMultipartUpload>`;
    await this.#document('POST', key, { uploadId }, Buffer.from(body));
  }

  async #document(
    method: string,
    key: string,
    query: Record<string, string>,
    body?: Uint8Array,
    headers: Record<string, string> = {},
  ): Promise<XmlElement> {
    const response = await this.#send(method, key, query, body, { timeoutMs: 0, headers });
    if (!response.ok) throw await bucketErrorFrom(response);
    const root = parseXml(await response.text());
    if (root === undefined)
      throw new CliError(`${this.#client.url} does not answer as Berth does; check BERTH_URL`);
    // An error after the response has started is in its document.
    if (root.name === 'Error')
      throw new BucketError(500, escapeControlCharacters(childText(root, 'Message') ?? 'the server failed'));
    return root;
  }

  #send(
    method: string,
    key: string,
    query: Record<string, string>,
    body: Uint8Array | undefined,
    options: SendOptions = {},
  ): Promise<Response> {
    const path = [this.#id, ...(key === '' ? [] : key.split('/'))].map(encodeURIComponent).join('/');
    const text = new URLSearchParams(query).toString().replaceAll('+', '%20');
    return this.#client.send(method, `/s3/${path}${text === '' ? '' : `?${text}`}`, body, {
      accept: '*/*',
      ...options,
    });
  }
}

async function bucketErrorFrom(response: Response): Promise<BucketError> {
  const message = childText(parseXml(await response.text()), 'Message');
  return new BucketError(
    response.status,
    escapeControlCharacters(
      message ?? `the server answered ${response.status} ${response.statusText}`.trimEnd(),
    ),
  );
}

function unquoteEtag(etag: string | null | undefined): string {
  return (etag ?? '').replaceAll('"', '');
}
