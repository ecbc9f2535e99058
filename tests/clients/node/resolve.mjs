// Lets the tests stay in the clone while their packages are in the cache: what is not found from here is looked for there.
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

const installed = process.env.ANTIPHON_CLIENTS;
if (!installed) throw new Error("ANTIPHON_CLIENTS must name the folder with node_modules (tests/clients/run.py sets it)");
const parentURL = pathToFileURL(`${installed}/index.mjs`).href;

registerHooks({
  resolve(specifier, context, next) {
    const bare = !/^(\.|\/|[a-z]+:)/.test(specifier);
    const ours = bare && context.parentURL?.startsWith(new URL(".", import.meta.url).href);
    return next(specifier, ours ? { ...context, parentURL } : context);
  },
});
