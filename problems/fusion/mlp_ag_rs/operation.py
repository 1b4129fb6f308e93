"""Gated MLP of tensor and sequence parallelism: all-gather, SwiGLU, down projection, reduce-scatter."""
import torch
import torch.distributed as dist


def operation(
    x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor, y: torch.Tensor
) -> None:
    """x: [rows, k], gate, up: [f, k], down: [n, f], all halves; y: [rows, n] floats."""
    rows = torch.empty(dist.get_world_size() * x.shape[0], x.shape[1], dtype=x.dtype, device=x.device)
    dist.all_gather_into_tensor(rows, x)
    g, u = rows.float() @ gate.float().t() / 8, rows.float() @ up.float().t() / 8
    hidden = (torch.nn.functional.silu(g) * u).half()
    dist.reduce_scatter_tensor(y, hidden.float() @ down.float().t(), op=dist.ReduceOp.SUM)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for cols in (1, 3):
        x, gate, up = torch.randint(-2, 3, (3, 64, 64), device="cuda").half()
        down = torch.randint(-2, 3, (cols * 32, 64), device="cuda").half()
        operation(x, gate, up, down, torch.empty(64, cols * 32, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
