/** Names of what the gateway counts, and of its labels. It has the names of Services, by which the release is known. */
export interface TrafficMetrics {
  /** Counter of requests. */
  requests: string;
  /** Histogram of their durations: `<name>_bucket`, with the label `le`. */
  durations: string;
  /** Of a duration in the histogram: 1 for milliseconds, 1000 for seconds. */
  millisecondsPerUnit: number;
  /** Label with the status of an answer. */
  statusLabel: string;
  /** Regular expressions of statuses that are errors, as '5..'. */
  errorStatuses: string;
  /** Label with the name of the Service, and a regular expression that its value must match; `SERVICE` stands for the name. */
  serviceLabel: string;
  servicePattern: string;
}

/** Of Istio's gateway. Others are named by settings. */
export const istioTraffic: TrafficMetrics = {
  requests: 'istio_requests_total',
  durations: 'istio_request_duration_milliseconds',
  millisecondsPerUnit: 1,
  statusLabel: 'response_code',
  errorStatuses: '0|5..',
  serviceLabel: 'destination_service_name',
  servicePattern: 'SERVICE',
};
