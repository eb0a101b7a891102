//! What is wrong, if something is.

use axum::Json;
use axum::extract::State;
use outlast_wire::api::DoctorReport;

use super::Daemon;
use crate::lanes::{Lane, in_lane};
use crate::refusal::Answer;
use crate::runs::doctor;

/// Looks for what is wrong
///
/// Reads the whole journal and the state directory, which may take a while.
#[utoipa::path(get, operation_id = "examine", path = "/v1/doctor", responses((status = 200, description = "what was found", body = DoctorReport)))]
pub(crate) async fn examine(State(supervisor): Daemon) -> Answer<Json<DoctorReport>> {
    in_lane(Lane::Surveys, move || Ok(Json(doctor::examine(&supervisor)))).await
}
