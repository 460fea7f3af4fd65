import { HUB_OWNER } from '../../resources/hub/hub.ts';
import type { HubListing } from '../../resources/hub/hub.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { isoTime } from '../../support/clock.ts';
import type { RequestContext } from './graphql-request-context.ts';
import type { GraphqlModule } from './graphql-module.ts';

const sdl = `
  input ListingsInput {
    searchQuery: String
    category: String
    limit: Int
    offset: Int
    "title, createdAt or updatedAt"
    orderBy: String
    "asc or desc"
    orderDirection: String
    owner: String
  }
  "A worker that can be deployed as it is"
  type Listing {
    id: String
    title: String
    description: String
    category: String
    "SERVERLESS: its release becomes an endpoint"
    type: String
    language: String
    tags: [String]
    repoId: String
    repoName: String
    repoOwner: String
    repoOwnerAvatarUrl: String
    stars: Int
    views: Int
    deploys: Int
    openIssues: Int
    watchers: Int
    createdAt: DateTime
    updatedAt: DateTime
    listedRelease: ListingRelease
  }
  "Its id is the hubReleaseId of saveEndpoint"
  type ListingRelease {
    id: String
    name: String
    tagName: String
    body: String
    readme: String
    branch: String
    license: String
    "JSON text: what it needs to run"
    config: String
    deploys: Int
    iconUrl: String
    authorName: String
    createdAt: DateTime
    releasedAt: DateTime
    updatedAt: DateTime
    build: ListingBuild
    tests: String
  }
  type ListingBuild { id: String imageName: String }
  "A model that someone offers to all. Whoever hosts Berth offers none"
  type AiApiPublicConfig {
    id: String
    aiApiId: String
    modelName: String
    displayName: String
    description: String
    "JSON text"
    metadata: String
    isLive: Boolean
    createdAt: DateTime
    updatedAt: DateTime
  }

  extend type Query {
    listings(input: ListingsInput): [Listing]
    "Null where there is none"
    listing(id: String): Listing
    "Null where there is none"
    listingFromRepo(repoOwner: String, repoName: String): Listing
    allAiApiPublicConfigs: [AiApiPublicConfig]
  }
  extend type Endpoint { hubRelease: ListingRelease }
`;

interface ListingsInput {
  searchQuery?: string;
  category?: string;
  limit?: number;
  offset?: number;
  orderBy?: string;
  orderDirection?: string;
  owner?: string;
}

const CATEGORY = 'example';
const TAG = 'latest';
const DISK_IN_GB = 5;

export function hubModule({ hub, catalog, endpoints }: ResourceServices): GraphqlModule {
  const all = async (): Promise<ListingObject[]> => (await hub.listings()).map(serializeListing);
  const deploysOf = async (image: string, context: RequestContext): Promise<number> =>
    context.authenticated
      ? (await context.memoize('endpoints', () => endpoints.list(context.caller))).filter(
          (endpoint) => endpoint.image === image,
        ).length
      : 0;
  return {
    sdl,
    publicResolvers: {
      Query: {
        listings: async ({ input = {} }: { input?: ListingsInput }) => filterListings(await all(), input),
        listing: async ({ id }: { id?: string }) =>
          (await all()).find((listing) => listing.id === id) ?? null,
        listingFromRepo: async ({ repoOwner, repoName }: { repoOwner?: string; repoName?: string }) =>
          (await all()).find(
            (listing) =>
              listing.repoOwner === repoOwner?.toLowerCase() && listing.repoName === repoName?.toLowerCase(),
          ) ?? null,
        allAiApiPublicConfigs: () => [],
      },
    },
    fieldResolvers: {
      // The caller's endpoints only.
      Listing: {
        deploys: ({ listedRelease }: ListingObject, _args: unknown, context) =>
          deploysOf(listedRelease.build.imageName, context),
      },
      ListingRelease: {
        deploys: ({ build }: ReleaseObject, _args: unknown, context) => deploysOf(build.imageName, context),
        config: async (_release: ReleaseObject, _args: unknown, context) => {
          const offers = await context.memoize('gpus {}', () => catalog.gpus({}));
          const connected = new Set(offers.filter(({ maxCount }) => maxCount > 0).map(({ type }) => type.id));
          const gpuIds = catalog
            .pools()
            .filter(({ gpuTypeIds }) => gpuTypeIds.some((id) => connected.has(id)))
            .map(({ id }) => id)
            .join(',');
          return JSON.stringify({
            containerDiskInGb: DISK_IN_GB,
            gpuCount: 1,
            ...(gpuIds !== '' && { gpuIds }),
            env: [],
          });
        },
      },
      Endpoint: {
        hubReleaseId: async ({ record }: { record: { image: string } }) =>
          (await releaseOf(record.image))?.id ?? null,
        hubRelease: ({ record }: { record: { image: string } }) => releaseOf(record.image),
      },
    },
  };

  /** What runs the image of a release is from the hub, however it was made. */
  async function releaseOf(image: string): Promise<ReleaseObject | null> {
    return (
      (await all()).find(({ listedRelease }) => listedRelease.build.imageName === image)?.listedRelease ??
      null
    );
  }
}

type ListingObject = ReturnType<typeof serializeListing>;
type ReleaseObject = ListingObject['listedRelease'];

function serializeListing({
  name,
  title,
  description,
  readme,
  language,
  image,
  releaseId,
  changedAt,
}: HubListing) {
  const at = isoTime(changedAt);
  return {
    id: name,
    title,
    description,
    category: CATEGORY,
    type: 'SERVERLESS',
    language,
    tags: [CATEGORY, language.toLowerCase()],
    repoId: name,
    repoName: name,
    repoOwner: HUB_OWNER,
    repoOwnerAvatarUrl: null,
    // Nobody counts these here.
    stars: 0,
    views: 0,
    openIssues: 0,
    watchers: 0,
    createdAt: at,
    updatedAt: at,
    listedRelease: {
      id: releaseId,
      name: title,
      tagName: TAG,
      body: description,
      readme,
      branch: null,
      license: 'Apache-2.0',
      iconUrl: null,
      authorName: HUB_OWNER,
      createdAt: at,
      releasedAt: at,
      updatedAt: at,
      build: { id: releaseId, imageName: image },
      tests: null,
    },
  };
}

function filterListings(
  listings: ListingObject[],
  { searchQuery, category, owner, orderBy, orderDirection, limit, offset = 0 }: ListingsInput,
): ListingObject[] {
  const word = searchQuery?.toLowerCase();
  const found = listings.filter(
    (listing) =>
      (category === undefined || listing.category === category.toLowerCase()) &&
      (owner === undefined || listing.repoOwner === owner.toLowerCase()) &&
      (word === undefined ||
        [listing.title, listing.description, listing.repoName, ...listing.tags].some((text) =>
          text.toLowerCase().includes(word),
        )),
  );
  const by = orderBy === 'createdAt' || orderBy === 'updatedAt' ? orderBy : 'title';
  found.sort((a, b) => a[by].localeCompare(b[by]) * (orderDirection?.toLowerCase() === 'desc' ? -1 : 1));
  return found.slice(
    Math.max(0, offset),
    limit === undefined ? undefined : Math.max(0, offset) + Math.max(0, limit),
  );
}
