import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import { Cache, CacheError, HttpSource, openUrl, SourceError } from "../dist/index.js";
import { loadValid, type Files } from "./support.js";

type Behaviour = (request: IncomingMessage, response: ServerResponse, file: Uint8Array | undefined) => void;

interface Served {
  readonly url: string;
  /** Bytes of bodies that were sent. */
  sent: number;
  readonly requests: string[];
}

async function serve(files: Files, behave: Behaviour, use: (served: Served) => Promise<void>): Promise<void> {
  const served: Served = { url: "", sent: 0, requests: [] };
  const server = createServer((request, response) => {
    const name = decodeURIComponent(new URL(request.url ?? "", "http://localhost").pathname).slice("/data/cache/".length);
    served.requests.push(`${request.method} ${name} ${request.headers.range ?? ""}`);
    const end = response.end.bind(response);
    response.end = ((body?: Uint8Array) => {
      served.sent += request.method === "HEAD" ? 0 : (body?.length ?? 0);
      return end(body);
    }) as typeof response.end;
    behave(request, response, files.get(name));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  try {
    await use(Object.assign(served, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/data/cache` }));
  } finally {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
}

const ranged: Behaviour = (request, response, file) => {
  if (file === undefined) return void response.writeHead(404).end();
  if (request.method === "HEAD") return void response.writeHead(200, { "content-length": file.length }).end();
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
  if (range === null) return void response.writeHead(200, { "content-length": file.length }).end(file);
  const [from, to] = [Number(range[1]), Math.min(Number(range[2]), file.length - 1)];
  if (from >= file.length) return void response.writeHead(416, { "content-range": `bytes */${file.length}` }).end();
  const body = file.subarray(from, to + 1);
  response.writeHead(206, { "content-range": `bytes ${from}-${to}/${file.length}`, "content-length": body.length }).end(body);
};

/** As `ranged`, but for GET of one file. */
function otherwise(name: string, behave: Behaviour): Behaviour {
  return (request, response, file) => (request.method === "GET" && (request.url ?? "").includes(name) ? behave(request, response, file) : ranged(request, response, file));
}

function fails(failure: SourceError["failure"]): (error: unknown) => boolean {
  return (error) => error instanceof SourceError && error.failure === failure;
}

test("a cache on a server gives the samples of the folder, and one sample costs little", async () => {
  const files = loadValid("many-samples");
  // A shard that would be noticed if it were fetched whole: larger than all that a sample needs.
  const shard = files.get("shards/000000.bin") as Uint8Array;
  await serve(files, ranged, async (served) => {
    const cache = await openUrl(served.url);
    const opened = served.sent;
    const { payload, metadata } = await cache.sample(1234);
    assert.equal(metadata["i"], 1234n);
    assert.ok(payload.length < 64);
    const payloadRequests = served.requests.filter((one) => one.startsWith("GET shards/"));
    assert.equal(payloadRequests.length, payload.length === 0 ? 1 : 2);
    const blocks = 65536 + (files.get("metadata.arrow") as Uint8Array).length;
    assert.ok(served.sent - opened <= blocks + 64 + payload.length, `${served.sent - opened} bytes for one sample`);
    const before = served.sent;
    await cache.payload(1235);
    assert.ok(served.sent - before < 100, "the blocks are kept");
    assert.ok(shard.length > 40_000);
    await cache.verify();
    await cache.close();
  });
});

test("a server without HEAD, or without a length in its answer, is asked by a range", async () => {
  for (const status of [405, 501, 200]) {
    const behave: Behaviour = (request, response, file) =>
      request.method === "HEAD" && file !== undefined ? void response.writeHead(status, { "transfer-encoding": "chunked" }).end() : ranged(request, response, file);
    await serve(loadValid("minimal"), behave, async ({ url }) => {
      const cache = await openUrl(url);
      assert.equal((await cache.payload(0)).length, 5);
    });
  }
});

test("a server that ignores Range is refused before it has sent the file", async () => {
  const files = loadValid("many-samples");
  const whole: Behaviour = (_, response, file) => void response.writeHead(200, { "content-length": file?.length }).end(file);
  await serve(files, otherwise("shards/", whole), async ({ url }) => {
    const cache = await openUrl(url);
    await assert.rejects(cache.payload(0), fails("range_ignored"));
  });
  // Where the whole file is wanted, the whole file is an answer.
  await serve(files, otherwise("manifest.json", whole), async ({ url }) => {
    const cache = await openUrl(url);
    assert.equal(cache.samples, 5000);
  });
});

test("absent files are file_missing; other statuses are the server's failure", async () => {
  const files = loadValid("minimal");
  await serve(new Map(), ranged, async ({ url }) => {
    await assert.rejects(openUrl(url), (error: CacheError) => error.code === "file_missing" && error.file === "manifest.json");
  });
  files.delete("shards/000000.bin");
  await serve(files, ranged, async ({ url }) => {
    const cache = await openUrl(url);
    await assert.rejects(cache.payload(0), (error: CacheError) => error.code === "file_missing" && error.file === "shards/000000.bin");
  });
  for (const status of [403, 500]) {
    await serve(files, (_, response) => void response.writeHead(status).end(), async ({ url }) => {
      await assert.rejects(openUrl(url), fails("status"));
    });
  }
});

test("416, a wrong range, and bodies that are too short or too long are failures of the server", async () => {
  const cases: [SourceError["failure"], Behaviour][] = [
    ["status", (_, response) => void response.writeHead(416, { "content-range": "bytes */3" }).end()],
    ["wrong_length", (_, response, file) => void response.writeHead(206, { "content-range": `bytes 0-3/${file?.length}` }).end(new Uint8Array(4))],
    ["wrong_length", (_, response) => void response.writeHead(206).end(new Uint8Array(3))],
    ["wrong_length", (_, response) => void response.writeHead(206, { "transfer-encoding": "chunked" }).end(new Uint8Array(1_000_000))],
    ["wrong_length", (_, response) => void response.writeHead(206, { "content-length": 1_000_000 }).end(new Uint8Array(1_000_000))],
    [
      "network",
      (_, response) => {
        response.writeHead(206, { "transfer-encoding": "chunked" });
        response.write(new Uint8Array(2), () => response.destroy());
      },
    ],
  ];
  for (const [failure, behave] of cases) {
    await serve(loadValid("minimal"), otherwise("shards/", behave), async ({ url }) => {
      const cache = await openUrl(url);
      await assert.rejects(cache.payload(0), fails(failure));
    });
  }
});

test("another size on the server is file_size, and an absurd one costs no memory", async () => {
  const files = loadValid("minimal");
  const claim = (name: string, size: number): Behaviour => (request, response, file) =>
    request.method === "HEAD" && (request.url ?? "").includes(name) ? void response.writeHead(200, { "content-length": size }).end() : ranged(request, response, file);
  await serve(files, claim("index.bin", 387), async ({ url }) => {
    await assert.rejects(openUrl(url), (error: CacheError) => error.code === "file_size" && error.file === "index.bin");
  });
  await serve(files, claim("manifest.json", 200_000_000), async ({ url }) => {
    await assert.rejects(openUrl(url), SourceError);
  });
});

test("a server that doesn't answer is given up", async () => {
  await serve(new Map(), () => undefined, async ({ url }) => {
    await assert.rejects(openUrl(url, { timeout: 50 }), fails("network"));
  });
});

test("headers and the query of the URL go with every request, and the query into no message", async () => {
  const files = loadValid("minimal");
  const guarded: Behaviour = (request, response, file) =>
    request.headers["x-key"] === "k" && (request.url ?? "").endsWith("?token=t") ? ranged(request, response, file) : void response.writeHead(401).end();
  await serve(files, guarded, async ({ url }) => {
    const cache = await openUrl(`${url}/?token=t`, { headers: { "x-key": "k" } });
    assert.equal((await cache.payload(0)).length, 5);
    await assert.rejects(Cache.open(new HttpSource(`${url}?token=secret`)), (error: Error) => error instanceof SourceError && !error.message.includes("secret"));
  });
});
