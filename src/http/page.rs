//! Lists, a page at a time.

use serde::Serialize;

use crate::protocol::ApiError;

use super::query::Query;

/// Which page is asked for.
#[derive(Clone, Debug)]
pub struct Paging {
    /// Only what comes after the thing of this id.
    pub after: Option<String>,
    /// Newest first.
    pub descending: bool,
    /// At most so many.
    pub limit: usize,
}

impl Paging {
    /// Reads `limit` (1 to 100, 20), `order` (`desc`) and `after`.
    pub fn read(query: &Query) -> Result<Self, ApiError> {
        let limit = query.integer("limit", 1..=100)?.unwrap_or(20);
        let descending = match query.get("order") {
            None | Some("desc") => true,
            Some("asc") => false,
            Some(other) => {
                return Err(ApiError::invalid(
                    "order",
                    format!("`order` is `{other}`; it must be `asc` or `desc`."),
                ));
            }
        };
        Ok(Self {
            after: query.get("after").map(str::to_owned),
            descending,
            limit: usize::try_from(limit).unwrap_or(20),
        })
    }

    /// How many rows to fetch: one more than is shown tells whether there is a next page.
    pub fn fetch(&self) -> i64 {
        i64::try_from(self.limit).unwrap_or(i64::MAX - 1) + 1
    }
}

/// A page of a list.
#[derive(Debug, Serialize)]
pub struct Page<T> {
    object: &'static str,
    data: Vec<T>,
    first_id: Option<String>,
    last_id: Option<String>,
    has_more: bool,
}

impl<T> Page<T> {
    /// The page of these rows, of which one more was fetched than is shown.
    pub fn of(mut rows: Vec<T>, paging: &Paging, id: impl Fn(&T) -> &str) -> Self {
        let has_more = rows.len() > paging.limit;
        rows.truncate(paging.limit);
        Self { has_more, ..Self::whole(rows, id) }
    }

    /// All rows of a list that is not cut into pages.
    pub fn whole(rows: Vec<T>, id: impl Fn(&T) -> &str) -> Self {
        Self {
            object: "list",
            first_id: rows.first().map(|row| id(row).to_owned()),
            last_id: rows.last().map(|row| id(row).to_owned()),
            has_more: false,
            data: rows,
        }
    }
}

/// A cursor that is on no page.
pub fn unknown_cursor(after: &str) -> ApiError {
    ApiError::invalid("after", format!("`after` is `{after}`, and this list has no such id."))
}
