interface AnsweredPage<Item> {
  readonly data: readonly Item[];
  readonly next_cursor: string | null;
}

/** Largest `limit` that the API takes. */
const pageSize = 200;

/** All items of a list. The next page is read when its first item is asked for. */
export async function* eachItem<Item>(
  readPage: (query: { limit: number; cursor?: string }) => Promise<AnsweredPage<Item>>,
): AsyncGenerator<Item> {
  let page = await readPage({ limit: pageSize });
  yield* page.data;
  while (page.next_cursor !== null) {
    page = await readPage({ limit: pageSize, cursor: page.next_cursor });
    yield* page.data;
  }
}

/** The first `count` items of a list, or all of them. */
export async function firstItems<Item>(items: AsyncIterable<Item>, count = Number.POSITIVE_INFINITY): Promise<Item[]> {
  const found: Item[] = [];
  if (count <= 0) return found;
  for await (const item of items) {
    found.push(item);
    if (found.length >= count) break;
  }
  return found;
}
