//! HTTP APIs as servers of tools.

use std::sync::Arc;

use aws_lc_rs::digest;
use futures::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};
use url::Url;

use crate::{
    config::OpenApi,
    mcp::Approval,
    net,
    protocol::{
        ApiError, Extra, Part, Raw,
        content::{InputFile, InputImage},
        hosted_tool::OpenApiTool,
    },
    turn::{ToolFailure, ToolOutput},
};

use super::{
    Call, OWN_LABEL, Spec, Tool, ToolError,
    openapi::{
        Access, ApiResult, CallLimits, Content, Documents, Operation, SchemaFault, Wanted,
        build_request, execute, needs_approval, parse, read_document,
    },
    server::{Listed, ToolServer, terms},
};

/// What calling APIs takes.
#[derive(Clone)]
pub struct Apis {
    /// Reaches addresses that people chose.
    pub client: net::Client,
    /// Fetches documents.
    pub documents: Documents,
    /// Limits and credentials.
    pub settings: Arc<OpenApi>,
}

/// An API in one Response.
pub(super) struct OpenApiServer {
    asked: OpenApiTool,
    /// Which calls wait for consent.
    rule: Option<Approval>,
    /// The operations, where the request brings the document along.
    inline: Option<Vec<Operation>>,
    schema_url: Option<Url>,
    access: Arc<Access>,
    apis: Apis,
    identity: [u8; 32],
    definition: String,
}

/// An operation of it.
struct OperationTool {
    spec: Spec,
    operation: Operation,
    access: Arc<Access>,
    apis: Apis,
}

impl OpenApiServer {
    /// The API that the tool at `place` (such as `tools[2]`) means. What can be refused before anybody is asked is refused here.
    pub(super) async fn new(
        asked: &OpenApiTool,
        apis: &Apis,
        place: &str,
    ) -> Result<Self, ApiError> {
        let wrong = |field: &str, why: String| ApiError::invalid(format!("{place}.{field}"), why);
        if asked.server_label == OWN_LABEL {
            return Err(wrong(
                "server_label",
                format!(
                    "The label `{OWN_LABEL}` stands for the tools of this server itself. Choose another one."
                ),
            ));
        }
        let credential = match &asked.credential {
            None => None,
            Some(name) => Some((
                &**name,
                apis.settings.credentials.get(name).ok_or_else(|| {
                    wrong("credential", format!("There is no credential `{name}` on this server. Its operator names them under `tools.openapi.credentials`."))
                })?,
            )),
        };
        let rule = match &asked.require_approval {
            None => None,
            Some(rule) => Some(
                Approval::parse(rule, "require_approval")
                    .map_err(|wrong| wrong.into_error(place))?,
            ),
        };
        let headers = asked.headers.expose().iter().flatten();
        let headers = headers.map(|(name, value)| (name.as_str(), value.as_str()));
        let access = Access::new(headers, credential);
        for header in access.refused() {
            tracing::warn!(label = %asked.server_label, %header, "a header for an API is not sent");
        }
        let schema_url = match &asked.schema_url {
            None => None,
            Some(url) => {
                let url = Url::parse(url).map_err(|error| {
                    wrong("schema_url", format!("`{url}` is not an address: {error}."))
                })?;
                apis.client.raw(&url).map_err(|denied| {
                    wrong("schema_url", format!("{denied} (API `{}`).", asked.server_label))
                })?;
                Some(url)
            }
        };
        let mut server = Self {
            asked: asked.clone(),
            rule,
            inline: None,
            schema_url,
            access: Arc::new(access),
            apis: apis.clone(),
            identity: identity(asked),
            definition: definition(asked),
        };
        match (&asked.schema, &server.schema_url) {
            (Some(_), Some(_)) => {
                return Err(wrong(
                    "schema_url",
                    "`schema` is given too; give one of the two.".to_owned(),
                ));
            }
            (None, None) => {
                return Err(wrong("schema", "The OpenAPI document is missing: give it in `schema`, or its address in `schema_url`.".to_owned()));
            }
            (None, Some(_)) => (),
            (Some(schema), None) => {
                let fault = |SchemaFault { path, sentence }: SchemaFault| {
                    let path = if path.is_empty() { "schema".to_owned() } else { path };
                    wrong(&path, sentence)
                };
                let (schema, own, settings) =
                    (schema.clone(), asked.clone(), Arc::clone(&apis.settings));
                let read = apis.documents.read(move || {
                    let document = inline_document(&schema, settings.schema_limit())?;
                    operations(&own, &settings, &document, None)
                });
                let operations = read.await.map_err(fault)?;
                for operation in &operations {
                    server
                        .access
                        .check(&operation.base)
                        .map_err(|refused| wrong("credential", refused.to_string()))?;
                    apis.client.raw(&operation.base).map_err(|denied| {
                        wrong("server_url", format!("{denied} (API `{}`).", asked.server_label))
                    })?;
                }
                server.inline = Some(operations);
            }
        }
        Ok(server)
    }

    /// The operations, fetched if need be.
    async fn known(&self) -> Result<Vec<Operation>, String> {
        if let Some(operations) = &self.inline {
            return Ok(operations.clone());
        }
        let Some(url) = &self.schema_url else { return Ok(Vec::new()) };
        let credential = self.asked.credential.as_deref().and_then(|name| {
            self.apis.settings.credentials.get(name).map(|credential| (name, credential))
        });
        let document = self
            .apis
            .documents
            .fetch(&self.apis.client, url, credential)
            .await
            .map_err(|error| error.to_string())?;
        let settings = &self.apis.settings;
        let operations = operations(&self.asked, settings, &document.root, Some(&document.url))
            .map_err(|fault| format!("{} ({})", fault.sentence, fault.path))?;
        for operation in &operations {
            self.access.check(&operation.base).map_err(|refused| refused.to_string())?;
        }
        Ok(operations)
    }

    fn tool(&self, operation: Operation) -> Arc<dyn Tool> {
        for note in &operation.notes {
            tracing::debug!(label = %self.asked.server_label, operation = %operation.name, %note, "part of an API is not offered");
        }
        let spec = Spec {
            label: self.asked.server_label.clone(),
            needs_approval: needs_approval(self.rule.as_ref(), &operation),
            is_repeatable: operation.reads_only(),
            time_limit: self.apis.settings.timeout,
            ..Spec::own(
                &operation.name,
                &operation.name,
                &operation.description,
                &operation.parameters,
            )
        };
        let (access, apis) = (Arc::clone(&self.access), self.apis.clone());
        Arc::new(OperationTool { spec, operation, access, apis })
    }
}

impl ToolServer for OpenApiServer {
    fn label(&self) -> &str {
        &self.asked.server_label
    }

    fn digest(&self, tool: &str, arguments: &str) -> [u8; 32] {
        hashed([self.identity.as_slice(), tool.as_bytes(), arguments.as_bytes()])
    }

    fn definition(&self) -> &str {
        &self.definition
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Listed>, String>> {
        Box::pin(async move {
            let operations = self.known().await?;
            let listed = operations.into_iter().map(|operation| Listed {
                shown: Raw::of(&operation.listed()),
                tool: self.tool(operation),
            });
            Ok(listed.collect())
        })
    }

    fn recall<'a>(&'a self, _listed: &'a [Raw]) -> BoxFuture<'a, Option<Vec<Arc<dyn Tool>>>> {
        // A list does not say how its tools are called: the document does.
        let known = async move {
            let operations = self.known().await.ok()?;
            Some(operations.into_iter().map(|operation| self.tool(operation)).collect())
        };
        known.boxed()
    }
}

impl Tool for OperationTool {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let prepared = build_request(&self.operation, call.arguments)
                .map_err(|why| ToolError::told(why.0))?;
            let limits = CallLimits {
                time: self.spec.time_limit,
                answer: self.apis.settings.answer_limit(),
            };
            let result = execute(&self.apis.client, &self.access, prepared, limits)
                .await
                .map_err(|error| ToolError::told(error.to_string()))?;
            if result.is_error() {
                let error = json!({ "type": "http_error", "code": result.status, "message": result.text() });
                return Err(ToolError::ForModel(ToolFailure {
                    error: Some(Raw::of(&error)),
                    ..ToolFailure::new(result.text())
                }));
            }
            Ok(output(result))
        })
    }
}

/// The text, then the file that came, for models that take such things.
fn output(result: ApiResult) -> ToolOutput {
    let mut told = vec![Part::input_text(result.text())];
    if let Content::File(file) = result.content {
        let url = format!("data:{};base64,{}", file.mime, file.data);
        told.push(if file.is_image() {
            Part::InputImage(InputImage {
                image_url: Some(url),
                detail: "auto".to_owned(),
                ..InputImage::default()
            })
        } else {
            Part::InputFile(InputFile {
                filename: Some(file.name),
                file_data: Some(url),
                ..InputFile::default()
            })
        });
    }
    ToolOutput { told, fields: Extra::new() }
}

/// The operations of a document that a request lets in.
fn operations(
    asked: &OpenApiTool,
    settings: &OpenApi,
    document: &Value,
    found_at: Option<&Url>,
) -> Result<Vec<Operation>, SchemaFault> {
    let wanted = Wanted {
        server_url: asked.server_url.as_deref(),
        schema_url: found_at,
        allowed: asked.allowed_operations.as_deref(),
        max_operations: settings.max_operations.get(),
    };
    parse(document, &wanted)
}

/// A document that a request brings along: an object, or a text of JSON or YAML.
fn inline_document(schema: &Raw, limit: usize) -> Result<Value, SchemaFault> {
    match schema.to::<String>() {
        Ok(text) => read_document(&text, limit),
        Err(_) => read_document(schema.json(), limit),
    }
}

/// What stands behind the label: the document and the server, whatever is let in of it.
fn identity(asked: &OpenApiTool) -> [u8; 32] {
    hashed([
        asked.schema.as_ref().map_or("", Raw::json).as_bytes(),
        asked.schema_url.as_deref().unwrap_or_default().as_bytes(),
        asked.server_url.as_deref().unwrap_or_default().as_bytes(),
    ])
}

fn definition(asked: &OpenApiTool) -> String {
    let allowed = Raw::of(&asked.allowed_operations);
    let whole = hashed([identity(asked).as_slice(), allowed.json().as_bytes()]);
    terms(&whole)
}

fn hashed<const N: usize>(parts: [&[u8]; N]) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut whole = [0; 32];
    whole.copy_from_slice(context.finish().as_ref());
    whole
}
