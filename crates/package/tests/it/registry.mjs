// A registry that offers one folder as one skill: registry.mjs NODE_MODULES FOLDER
import { createServer } from "node:http";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join, relative } from "node:path";

const [modules, folder] = process.argv.slice(2);
const { zipSync } = createRequire(join(modules, "x"))("fflate");
const slug = basename(folder);
const files = {};
for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
	if (!entry.isFile()) continue;
	const path = join(entry.parentPath ?? entry.path, entry.name);
	files[relative(folder, path)] = new Uint8Array(readFileSync(path));
}
const about = {
	skill: { slug, displayName: slug, tags: {}, stats: {}, createdAt: 1, updatedAt: 1 },
	latestVersion: { version: "1.2.0", createdAt: 1, changelog: "" },
	owner: null,
	moderation: null,
};
const server = createServer((request, response) => {
	const { pathname } = new URL(request.url, "http://localhost");
	if (pathname === `/api/v1/skills/${slug}`) {
		response.setHeader("content-type", "application/json");
		response.end(JSON.stringify(about));
	} else if (pathname === "/api/v1/download") {
		response.end(Buffer.from(zipSync(files)));
	} else {
		response.statusCode = 404;
		response.end();
	}
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
