//! JSON on its way into a `json` column.

use serde::Serialize;
use sqlx::{
    Encode, Postgres, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, types::Oid},
};

/// A value bound as `json`. sqlx's `Json` is bound as `jsonb`, also where the column is `json`: PostgreSQL then writes the text anew, with
/// the keys in another order, numbers in another form and spaces between.
#[derive(Debug)]
pub(super) struct AsJson<T>(pub(super) T);

impl<T> Type<Postgres> for AsJson<T> {
    fn type_info() -> PgTypeInfo {
        // `json` in pg_type.dat.
        PgTypeInfo::with_oid(Oid(114))
    }
}

impl<T> PgHasArrayType for AsJson<T> {
    fn array_type_info() -> PgTypeInfo {
        // `json[]`.
        PgTypeInfo::with_oid(Oid(199))
    }
}

impl<T: Serialize> Encode<'_, Postgres> for AsJson<T> {
    fn encode_by_ref(&self, buf: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        serde_json::to_writer(&mut **buf, &self.0)?;
        Ok(IsNull::No)
    }
}
