use super::*;

#[test]
fn a_model_is_counted_with_the_vocabulary_of_its_family() {
    use Vocabulary::{Characters, Cl100k, O200k};
    for (model, vocabulary) in [
        ("gpt-4o-mini", O200k),
        ("gpt-4.1", O200k),
        ("gpt-4", Cl100k),
        ("gpt-4-turbo", Cl100k),
        ("gpt-3.5-turbo", Cl100k),
        ("o3", O200k),
        ("o4-mini", O200k),
        ("openai/gpt-oss-20b", O200k),
        ("Qwen/Qwen3-8B", O200k),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", Cl100k),
        ("deepseek-v3", O200k),
        ("meta-llama/Llama-3.1-8B-Instruct", Cl100k),
        ("llama4:scout", O200k),
        ("mistral-nemo", O200k),
        ("mistral:7b", Cl100k),
        ("google/gemma-3-4b-it", O200k),
        ("o1000-of-somebody", Characters),
        ("my-own-model", Characters),
        ("", Characters),
    ] {
        assert_eq!(Vocabulary::for_model(model), vocabulary, "{model}");
    }
}

#[test]
fn openai_vocabularies_are_exact() {
    for (model, text, tokens) in [
        ("gpt-4o", "hello world", 2),
        ("gpt-4", "tiktoken is great!", 6),
        ("gpt-4o", "", 0),
        // Written by a user, so it is text and no mark.
        ("gpt-4", "<|endoftext|>", 7),
    ] {
        assert_eq!(TokenCounter::for_model(model).text(text), tokens, "{model}: {text}");
    }
}

#[test]
fn characters_come_near_to_tokens() {
    let samples = [
        "The quick brown fox jumps over the lazy dog, and then it walks home again because it is late.",
        "今天天气很好，我们去公园散步吧。人工智能正在改变我们的生活方式。",
        "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
        "Быстрая коричневая лиса прыгает через ленивую собаку и бежит домой.",
        "fn main() {\n    let mut x = vec![1, 2, 3];\n    for i in &x {\n        println!(\"{}\", i);\n    }\n}\n",
        r#"{"id": 12345, "name": "widget", "tags": ["a", "b"], "price": 19.99, "nested": {"ok": true}}"#,
    ];
    for sample in samples {
        let exact = TokenCounter::for_model("gpt-4o").text(sample);
        let near = TokenCounter::for_model("unheard-of").text(sample);
        assert!(near * 10 >= exact * 7 && near * 10 <= exact * 15, "{near} for {exact}: {sample}");
    }
}

#[test]
fn long_texts_come_to_an_end() {
    // A single run of anything is what vocabularies are slow at.
    for unit in [" ", "a", "\n", "好", "!"] {
        let text = unit.repeat(300_000);
        let mut counter = TokenCounter::for_model("gpt-4o");
        assert!(counter.text(&text) > 1_000, "{unit:?}");
    }
}

#[test]
fn what_is_beyond_the_exact_part_is_estimated() {
    let mut counter = TokenCounter { exact: 10, ..TokenCounter::for_model("gpt-4o") };
    assert_eq!(counter.text("hello world, hello world"), 5, "one piece is counted as a whole");
    assert_eq!(counter.text("hello world"), by_characters("hello world"));
}

#[test]
fn pieces_cost_at_most_a_token_each() {
    let text = "hello world and all who live in it ".repeat(8_000);
    let whole = count(o200k_base_singleton().count_ordinary(&text));
    let pieces = count(text.len() / PIECE + 1);
    let counted = TokenCounter::for_model("gpt-4o").text(&text);
    assert!(counted.abs_diff(whole) <= pieces, "{counted} instead of {whole}");
}

#[test]
fn pictures_are_counted_in_tiles() {
    let counter = TokenCounter::for_model("gpt-4o");
    let unseen = "https://pictures.example/a.png";
    assert_eq!(counter.image(unseen, "low"), 85);
    assert_eq!(counter.image(unseen, "high"), 85 + 170 * 4);
    for (width, height, tiled) in [
        (1024.0, 1024.0, 4),
        (2048.0, 4096.0, 6),
        (512.0, 512.0, 1),
        (1.0, 1.0, 1),
        (1.0, 65_535.0, 4),
    ] {
        assert_eq!(tiles(width, height), tiled, "{width} × {height}");
    }
}

#[test]
fn files_are_counted_by_their_text_where_they_have_one() {
    let mut counter = TokenCounter::for_model("gpt-4o");
    let encoded = STANDARD.encode("hello world");
    assert_eq!(counter.file(&format!("data:text/plain;base64,{encoded}")), 2);
    assert_eq!(counter.file(&"A".repeat(64 * 4 * 100 / 3 + 4)), 100);
}
