//! Rebuilds when a migration is added: `sqlx::migrate!` puts the folder into the binary, and cargo does not see that by itself.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
