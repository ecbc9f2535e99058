// Where the scripted antiphon is, and what its script says.
export const baseURL = process.env.ANTIPHON_BASE_URL;
export const apiKey = process.env.ANTIPHON_API_KEY ?? "none";
export const model = process.env.ANTIPHON_MODEL ?? "scripted";
export const story = "Once upon a time a little fox — 🦊, née “Füchsin” — crossed the river, and nobody saw her again.";
export const weather = { Oslo: "rain, 7 degrees", Rome: "sun, 21 degrees" };

if (!baseURL) throw new Error("ANTIPHON_BASE_URL must name a scripted antiphon (tests/clients/run.py starts one)");
