// Calls a function of the Agent SDK for TypeScript on a store whose answers are given, or with {"onFiles": true} on the
// client's files.
//     node agent_sdk.mjs SDK_DIR < {"function": …, "arguments": […], "sessions": […], "summaries": […], "entries": {id: […]}}
// Prints the result as JSON. `load` of a session without entries is an error: nothing may be read that is summed up.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const job = JSON.parse(readFileSync(0, "utf8"));
const sdk = await import(pathToFileURL(process.argv[2] + "/sdk.mjs").href);
const sessionStore = {
    append: async () => { throw new Error("nothing is to be appended"); },
    load: async ({ sessionId }) => {
        if (!(sessionId in job.entries)) throw new Error("nothing is to be loaded");
        return job.entries[sessionId];
    },
    listSessions: async () => job.sessions,
    listSessionSummaries: async () => job.summaries,
};
const options = job.onFiles ? { ...job.options } : { ...job.options, sessionStore };
console.log(JSON.stringify(await sdk[job.function](...job.arguments, options) ?? null));
